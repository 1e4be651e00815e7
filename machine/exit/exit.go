// Package exit says how a launcher ended, by what the kubelet says of its container.
package exit

import (
	"fmt"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
)

// Exit codes that a launcher chooses itself; any other comes from a signal, or from Go's runtime.
const (
	// Done is the code of a launcher whose guest shut down, or was ended on request.
	Done = 0
	// Failed is that of one whose guest failed.
	Failed = 1
	// LibvirtDied is that of one whose libvirtd has ended.
	LibvirtDied = 3
)

// Reasons that the kubelet gives for a container's end; Kubernetes has no constants for them.
const (
	oomKilled = "OOMKilled"
	lost      = "ContainerStatusUnknown"
)

// signalled is what the kubelet adds to the number of the signal that killed a container.
const signalled = 128

// signals are the names of those that end launchers.
var signals = map[int32]string{2: "SIGINT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}

// How is why a launcher ended.
type How struct {
	// Reason is one CamelCase word; empty for a launcher that ended well.
	Reason string
	// Message tells people, in one line. It is the launcher's own where it left one, and never a piece of its log: empty
	// for a launcher that ended well and said nothing.
	Message string
}

// Of returns how a launcher ended whose container the kubelet calls terminated. It never fails: what it doesn't know is
// told by the exit code. The message of a launcher is as long as it was written, up to what the kubelet reads (4 KiB).
func Of(t *k8sv1.ContainerStateTerminated) How {
	own := word(t)
	switch {
	case t.ExitCode == Done:
		return How{"", own}
	case t.Reason == oomKilled:
		return How{oomKilled, orElse(own, "the launcher Pod needed more memory than its limit")}
	case t.Reason == lost:
		return How{"LauncherFailed", fmt.Sprintf("the kubelet found the launcher gone, as after its node's restart (exit code %d)", t.ExitCode)}
	case t.ExitCode == LibvirtDied:
		return How{"LibvirtFailed", orElse(own, "libvirt died")}
	case t.ExitCode > signalled:
		return How{"LauncherKilled", fmt.Sprintf("the launcher was killed by %s (exit code %d)", signal(t.ExitCode-signalled), t.ExitCode)}
	}
	return How{"LauncherFailed", orElse(own, fmt.Sprintf("the launcher ended without giving a reason (exit code %d)", t.ExitCode))}
}

// word returns what a launcher wrote when it ended. With a code that it doesn't choose it wrote nothing, and with
// terminationMessagePolicy FallbackToLogsOnError the kubelet then takes the log's tail, which is nobody's reason.
func word(t *k8sv1.ContainerStateTerminated) string {
	chosen := t.ExitCode == Done || t.ExitCode == Failed || t.ExitCode == LibvirtDied
	line := strings.TrimSpace(t.Message)
	if !chosen || strings.ContainsAny(line, "\n\r") {
		return ""
	}
	return line
}

func signal(number int32) string {
	if name := signals[number]; name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", number)
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
