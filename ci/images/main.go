// Images builds the images of virtstack without a container engine: "go run ./ci/images build [name...]". The result is
// one OCI archive for each image, which "ctr images import" takes, and images.json, which says what is where.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

const usage = `usage: images [flags] build [name...]    build what is not up to date; all images if none is named
       images [flags] verify [name...]   run what the images hold: libvirt and QEMU, and the guest in it
       images [flags] contract           test the launcher's driver on the libvirt and QEMU of its image

images: virtstack, virt-launcher, guest
        virtstack-next, virt-launcher-next: the same programs as a later version, for tests of upgrades; only if named
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	b := &builder{log: os.Stderr}
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage, "\nflags:\n")
		flags.PrintDefaults()
	}
	flags.StringVar(&b.out, "out", ".cluster/images", "directory for archives and images.json")
	flags.StringVar(&b.cache, "cache", ".cluster/cache", "directory for packages and what is made on the way")
	flags.StringVar(&b.version, "version", "", "version that the programs tell, instead of the one in their source, with the commit that is checked out")
	verb, args := "", slices.Clone(args)
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") { // the verb may come before the flags
		verb, args = args[0], args[1:]
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.version != "" {
		var err error
		if b.commit, err = head(ctx, "."); err != nil {
			return err
		}
	}
	names := flags.Args()
	if verb == "" && len(names) > 0 {
		verb, names = names[0], names[1:]
	}
	switch verb {
	case "build":
		return b.build(ctx, names)
	case "verify":
		return b.verify(ctx, names)
	case "contract":
		return b.contract(ctx)
	}
	flags.Usage()
	return fmt.Errorf("unknown command %q", verb)
}
