package launcher

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/child"
	"virtstack.io/virtstack/launcher/driver/libvirt"
)

// probe writes what this image's QEMU can do on this node, for the node agent: capabilities.xml, domcapabilities-TYPE.xml
// for each way to run a guest, and libvirt's capability cache in cache/. It returns the exit code.
func probe(args []string) int {
	fs := flag.NewFlagSet("virt-launcher probe", flag.ContinueOnError)
	output := fs.String("output", "", "directory to write to")
	if err := fs.Parse(args); err != nil || *output == "" {
		fs.Usage()
		return 2
	}
	err := becomeUser()
	if err == nil {
		err = writeProbe(context.Background(), *output)
	}
	if err != nil {
		slog.Error("probing the node", "error", err)
		return 1
	}
	return 0
}

// becomeUser turns root into the launcher's user for good, in the group of /dev/kvm where there is one: a launcher is given
// the device by its node agent, a probe has to find it.
func becomeUser() error {
	if os.Geteuid() != 0 {
		return nil
	}
	var groups []int
	var kvm unix.Stat_t
	if err := unix.Stat("/dev/kvm", &kvm); err == nil && kvm.Gid != 0 {
		groups = append(groups, int(kvm.Gid))
	}
	if err := errors.Join(syscall.Setgroups(groups), syscall.Setgid(guestv1.User), syscall.Setuid(guestv1.User)); err != nil {
		return fmt.Errorf("becoming user %d: %w", guestv1.User, err)
	}
	return nil
}

func writeProbe(ctx context.Context, output string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*startTimeout)
	defer cancel()
	if err := child.Adopt(ctx); err != nil {
		return err
	}
	work := filepath.Join(output, "work")
	found, err := libvirt.Probe(ctx, libvirt.Options{Dir: work, Log: os.Stderr})
	if err != nil {
		return err
	}
	cache := filepath.Join(output, "cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	var errs []error
	for name, content := range found.Documents {
		errs = append(errs, os.WriteFile(filepath.Join(output, name), content, 0o644))
	}
	for name, content := range found.Cache {
		errs = append(errs, os.WriteFile(filepath.Join(cache, name), content, 0o644))
	}
	return errors.Join(append(errs, os.RemoveAll(work))...)
}
