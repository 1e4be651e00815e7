package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// debian is what a cluster needs of Debian: to build runc, to run kubelet and kube-proxy, and a shell for images.
var debian = []string{
	"gcc", "libc6-dev", "libseccomp-dev", "pkg-config",
	"iptables", "nftables", "conntrack", "iproute2", "mount", "e2fsprogs",
	"busybox-static",
}

// packages installs what is missing. It says so first: it changes the machine.
func packages(ctx context.Context, out io.Writer) error {
	missing := absent(ctx, debian)
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("this machine has no apt-get; install by hand what these are called here: %s", strings.Join(missing, " "))
	}
	fmt.Fprintln(out, "  apt-get install", strings.Join(missing, " "))
	if err := apt(ctx, "update", "-q"); err != nil {
		return err
	}
	return apt(ctx, append([]string{"install", "-q", "-y", "--no-install-recommends"}, missing...)...)
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if raw, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w:\n%s", args[0], err, raw)
	}
	return nil
}

// absent returns which of the packages aren't installed.
func absent(ctx context.Context, names []string) []string {
	args := append([]string{"-W", "-f", "${Package} ${db:Status-Status}\n"}, names...)
	raw, err := exec.CommandContext(ctx, "dpkg-query", args...).Output()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return names // no dpkg at all
	}
	return notListed(string(raw), names)
}

// notListed returns the names that dpkg-query's list doesn't call installed.
func notListed(list string, names []string) []string {
	installed := map[string]bool{}
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) == 2 && f[1] == "installed" {
			installed[f[0]] = true
		}
	}
	var missing []string
	for _, n := range names {
		if !installed[n] {
			missing = append(missing, n)
		}
	}
	return missing
}
