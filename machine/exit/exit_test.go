package exit_test

import (
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/machine/exit"
)

// tail is what the kubelet takes from a log when no reason was written.
const tail = "2026-01-02 info: starting\n{\"msg\":\"starting the guest\",\"password\":\"canary\"}\n"

func TestHowALauncherEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		seen k8sv1.ContainerStateTerminated
		want exit.How
	}{
		"well":                    {k8sv1.ContainerStateTerminated{Reason: "Completed"}, exit.How{}},
		"well, with a word":       {k8sv1.ContainerStateTerminated{Message: "the guest shut down\n"}, exit.How{Message: "the guest shut down"}},
		"guest failed":            {k8sv1.ContainerStateTerminated{ExitCode: 1, Message: "QEMU died\n"}, exit.How{Reason: "LauncherFailed", Message: "QEMU died"}},
		"failed, a log's tail":    {k8sv1.ContainerStateTerminated{ExitCode: 1, Message: tail}, exit.How{Reason: "LauncherFailed", Message: "the launcher ended without giving a reason (exit code 1)"}},
		"libvirtd died":           {k8sv1.ContainerStateTerminated{ExitCode: 3}, exit.How{Reason: "LibvirtFailed", Message: "libvirt died"}},
		"panic":                   {k8sv1.ContainerStateTerminated{ExitCode: 2, Message: "panic: canary"}, exit.How{Reason: "LauncherFailed", Message: "the launcher ended without giving a reason (exit code 2)"}},
		"killed":                  {k8sv1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", Message: tail}, exit.How{Reason: "LauncherKilled", Message: "the launcher was killed by SIGKILL (exit code 137)"}},
		"killed, a last line":     {k8sv1.ContainerStateTerminated{ExitCode: 143, Message: "canary"}, exit.How{Reason: "LauncherKilled", Message: "the launcher was killed by SIGTERM (exit code 143)"}},
		"a signal without a name": {k8sv1.ContainerStateTerminated{ExitCode: 128 + 40}, exit.How{Reason: "LauncherKilled", Message: "the launcher was killed by signal 40 (exit code 168)"}},
		"out of memory":           {k8sv1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", Message: tail}, exit.How{Reason: "OOMKilled", Message: "the launcher Pod needed more memory than its limit"}},
		"gone after a reboot": {k8sv1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located"},
			exit.How{Reason: "LauncherFailed", Message: "the kubelet found the launcher gone, as after its node's restart (exit code 137)"}},
	} {
		if got := exit.Of(&tc.seen); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

// Whatever is seen, a launcher that didn't end well has a reason and one line for people, which is no piece of a log.
func TestThereIsAlwaysAReasonAndNeverALog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := k8sv1.ContainerStateTerminated{
			ExitCode: rapid.Int32Range(0, 255).Draw(t, "code"),
			Reason:   rapid.SampledFrom([]string{"", "Error", "OOMKilled", "ContainerStatusUnknown"}).Draw(t, "reason"),
			Message:  tail,
		}
		got := exit.Of(&seen)
		if strings.Contains(got.Message, "canary") || strings.Contains(got.Message, "\n") {
			t.Fatalf("got %q, a piece of the log", got.Message)
		}
		if seen.ExitCode != 0 && (got.Reason == "" || got.Message == "") {
			t.Fatalf("got %+v for exit code %d", got, seen.ExitCode)
		}
	})
}
