package build

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"
	"time"
)

// A build waits for another one no longer than it may, and then is not refused: the next try may find its turn.
func TestWaitingForAnotherBuildEnds(t *testing.T) {
	one <- struct{}{}
	defer func() { <-one }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	files := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}
	if _, err := Objects(ctx, files, "", DefaultLimits); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
}
