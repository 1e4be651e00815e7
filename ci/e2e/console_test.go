//go:build e2e

package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
)

func TestConsole(t *testing.T) {
	p := newPlace(t, "console")
	p.create(p.vm("web"))
	p.phase("web", v1.Running, 2*time.Minute)
	first := p.shell("web")

	t.Run("many bytes come through, none lost", func(t *testing.T) {
		// Every line is numbered, so one that is lost is seen.
		p.must(first.Send("stty -echo; i=0; while [ $i -lt 5000 ]; do echo line-$i-; i=$((i+1)); done; echo all''sent\n"))
		p.must(first.Expect(t.Context(), "allsent", 3*time.Minute))
		out := first.Output()
		at := 0
		for i := range 5000 {
			line := "line-" + strconv.Itoa(i) + "-"
			next := strings.Index(out[at:], line)
			if next < 0 {
				t.Fatalf("%s is missing", line)
			}
			at += next + len(line)
		}
	})
	t.Run("a second client takes over and the first is told", func(t *testing.T) {
		second, err := theLab.Console(t.Context(), p.ns, "web")
		p.must(err)
		defer second.Close()
		p.must(first.Expect(t.Context(), "another", 20*time.Second))
		select {
		case <-first.Done():
		case <-time.After(20 * time.Second):
			t.Error("the first client still holds on")
		}
		p.must(second.Send("\necho still-''here\n"))
		p.must(second.Expect(t.Context(), "still-here", 20*time.Second))
	})
	t.Run("a reconnect finds the guest where it was", func(t *testing.T) {
		again, err := theLab.Console(t.Context(), p.ns, "web")
		p.must(err)
		defer again.Close()
		p.must(again.Send("\necho and-''again\n"))
		p.must(again.Expect(t.Context(), "and-again", 20*time.Second))
	})
}
