package proc

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestStatSkipsNamesWithBrackets(t *testing.T) {
	raw := "42 (a) b (c)) S 1 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 1"
	state, start, err := parseStat([]byte(raw))
	if err != nil || state != "S" || start != 98765 {
		t.Errorf("got %q %d %v, want S 98765", state, start, err)
	}
	if _, _, err := parseStat([]byte("42 (a) S 1")); err == nil {
		t.Error("a short line was accepted")
	}
}

func TestDaemonIsFoundAgainAndEnded(t *testing.T) {
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "run", "sleep.pid")
	id, err := Daemon{Args: []string{sleep, "1000"}, Log: filepath.Join(dir, "log"), PIDFile: file, State: dir}.Start()
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := Load(file); !ok || got != id || !got.Alive() {
		t.Errorf("loaded %v %v, want a live %v", got, ok, id)
	}
	if found, err := Marked(dir); err != nil || len(found) != 1 || found[0] != id {
		t.Errorf("marked: %v %v, want %v", found, err, id)
	}
	other := ID{id.PID, id.Start + 1}
	if err := other.End(t.Context(), syscall.SIGKILL, time.Second); err != nil || !id.Alive() {
		t.Errorf("ending an older process of the same number: %v, alive %v", err, id.Alive())
	}
	if err := id.End(t.Context(), syscall.SIGTERM, 5*time.Second); err != nil || id.Alive() {
		t.Errorf("ending: %v, alive %v", err, id.Alive())
	}
}
