package note

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNotesAreCut(t *testing.T) {
	if got := Of(errors.New("short")); got != "short" {
		t.Errorf("got %q", got)
	}
	if got := Of(strings.Repeat("€", 1000)); len(got) > most || len(got) < most-3 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
