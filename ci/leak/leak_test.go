package leak

import (
	"os"
	"strings"
	"testing"
)

// recorder is a test that only notes what it is told.
type recorder struct {
	testing.TB
	cleanup func()
	failed  string
}

func (r *recorder) Helper()          {}
func (r *recorder) Failed() bool     { return r.failed != "" }
func (r *recorder) Cleanup(f func()) { r.cleanup = f }
func (r *recorder) Errorf(format string, _ ...any) {
	r.failed = format
}

func TestAnOpenFileIsFound(t *testing.T) {
	r := &recorder{TB: t}
	Check(r)
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if r.cleanup(); !strings.Contains(r.failed, "are left") {
		t.Error("an open file was not found")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r.failed = ""
	if r.cleanup(); r.failed != "" {
		t.Error("something was found where nothing is left")
	}
}
