// Package launcher is virt-launcher: process 1 of a launcher Pod, which runs the guest of one VMI and ends with it. It
// holds no credentials, talks to nobody but its node agent, and believes nothing that a guest or an image says.
package launcher

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/child"
	"virtstack.io/virtstack/launcher/console"
	"virtstack.io/virtstack/launcher/disk"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver/libvirt"
	"virtstack.io/virtstack/launcher/guest"
	"virtstack.io/virtstack/launcher/serve"
)

const (
	// terminationLog is where the kubelet looks for the reason of an exit; source: Kubernetes' default.
	terminationLog = "/dev/termination-log"
	// startTimeout is how long libvirtd may take to serve.
	startTimeout = 30 * time.Second
)

// options are the command line.
type options struct {
	namespace, name, uid string
	grace                time.Duration
}

// Execute runs virt-launcher and returns its exit code: 0 the guest shut down or was stopped, 1 it failed, 2 wrong
// flags, 3 libvirtd died.
func Execute() int {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		return probe(os.Args[2:])
	}
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	exit := run(context.Background(), o)
	slog.Info("ending", "code", exit.Code, "reason", exit.Why)
	// What can't be written there is in the log.
	_ = os.WriteFile(terminationLog, []byte(exit.Why), 0o644)
	return exit.Code
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("virt-launcher", flag.ContinueOnError)
	fs.StringVar(&o.namespace, "namespace", "", "namespace of the VMI")
	fs.StringVar(&o.name, "name", "", "name of the VMI")
	fs.StringVar(&o.uid, "uid", "", "UID of the VMI")
	seconds := fs.Int64("grace-period-seconds", 30, "how long the guest may take to shut down")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.grace = time.Duration(*seconds) * time.Second
	return o, nil
}

// run brings everything up and looks after the guest until its end.
func run(ctx context.Context, o options) guest.Exit {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := child.Adopt(ctx); err != nil {
		return guest.Exit{Code: 1, Why: err.Error()}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	start, started := context.WithTimeout(ctx, startTimeout)
	defer started()
	work := filepath.Join(guestv1.RunDir, "libvirt.d")
	d, err := libvirt.Open(start, libvirt.Options{Dir: work, Log: os.Stderr})
	if err != nil {
		return guest.Exit{Code: 3, Why: err.Error()}
	}
	g := guest.New(d, o.grace)
	go func() {
		for range signals {
			g.Stop(time.Now())
		}
	}()
	finished, err := serveAll(ctx, o, g, work)
	if err != nil {
		return guest.Exit{Code: 1, Why: err.Error()}
	}
	exit := g.Loop(ctx)
	cancel()
	<-finished // watchers have the last state now
	return exit
}

// serveAll opens the sockets and serves on them until ctx ends; finished is closed when that is done.
func serveAll(ctx context.Context, o options, g *guest.Guest, work string) (finished <-chan struct{}, err error) {
	sockets := domain.Sockets{
		Serial: filepath.Join(guestv1.RunDir, "serial0.sock"),
		Agent:  filepath.Join(guestv1.RunDir, "agent.sock"),
		VNC:    filepath.Join(guestv1.RunDir, "vnc.sock"),
	}
	var open []net.Listener
	for _, path := range []string{sockets.Serial, filepath.Join(guestv1.RunDir, guestv1.ConsoleSocket), filepath.Join(guestv1.RunDir, guestv1.GuestSocket)} {
		l, err := console.Listen(path)
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", path, err)
		}
		open = append(open, l)
	}
	c := console.New()
	p := &preparer{
		options: o, work: work, sockets: sockets, console: c, ctx: ctx,
		disks: disk.Dirs{Disks: guestv1.DiskDir, Images: guestv1.ImageDir, Secrets: guestv1.SecretDir},
	}
	go func() {
		if err := c.Serve(ctx, open[0], open[1]); err != nil {
			slog.Error("serving the console", "error", err)
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := serve.New(g, p.prepare).Serve(ctx, open[2]); err != nil && ctx.Err() == nil {
			slog.Error("serving the node agent", "error", err)
		}
	}()
	return done, nil
}
