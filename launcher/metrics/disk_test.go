package metrics_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"virtstack.io/virtstack/launcher/metrics"
)

// A disk is always as long, and begins with a header that fits what follows. What doesn't fit leaves it as it is.
func TestTheDiskIsVhostmds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics")
	if err := metrics.Create(path); err != nil {
		t.Fatal(err)
	}
	if got := body(t, path); len(got) != 0 {
		t.Errorf("a new disk holds %q", got)
	}
	for _, report := range [][]byte{[]byte("<metrics/>"), make([]byte, metrics.Size)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go metrics.Keep(ctx, path, func() ([]byte, error) { return report, nil })
			synctest.Wait()
		})
	}
	if err := metrics.Create(path); err != nil { // again, which leaves it as it is
		t.Fatal(err)
	}
	if got := body(t, path); !bytes.Equal(got, []byte("<metrics/>\n")) {
		t.Errorf("the disk holds %q", got)
	}
}

func body(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) != metrics.Size {
		t.Fatalf("%d bytes, want %d; %v", len(raw), metrics.Size, err)
	}
	words := [4]uint32{}
	for i := range words {
		words[i] = binary.BigEndian.Uint32(raw[4*i:])
	}
	content := raw[16:][:words[3]]
	var sum uint32
	for _, b := range content {
		sum += uint32(b)
	}
	if words[0] != 0x6d766264 || words[1] != 0 || words[2] != sum {
		t.Errorf("header %x, the content's sum is %x", words, sum)
	}
	return content
}
