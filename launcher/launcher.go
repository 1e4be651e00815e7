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
	"sync"
	"syscall"
	"time"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/agent"
	"virtstack.io/virtstack/launcher/child"
	"virtstack.io/virtstack/launcher/console"
	"virtstack.io/virtstack/launcher/cpus"
	"virtstack.io/virtstack/launcher/credential"
	"virtstack.io/virtstack/launcher/disk"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver/libvirt"
	"virtstack.io/virtstack/launcher/guest"
	"virtstack.io/virtstack/launcher/serve"
	"virtstack.io/virtstack/launcher/share"
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
	if len(os.Args) > 1 && os.Args[1] == "ask" {
		return askGuest(os.Args[2:])
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
	_ = os.WriteFile(terminationLog, []byte(guest.Line(exit.Why)), 0o644)
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
	doors, err := open()
	if err != nil {
		return guest.Exit{Code: 1, Why: err.Error()}
	}
	start, started := context.WithTimeout(ctx, startTimeout)
	defer started()
	work := filepath.Join(guestv1.RunDir, "libvirt.d")
	d, err := libvirt.Open(start, libvirt.Options{Dir: work, Log: os.Stderr, HugePages: hugePages()})
	if err != nil {
		return guest.Exit{Code: 3, Why: err.Error()}
	}
	g := guest.New(d, o.grace)
	go func() {
		for range signals {
			g.Stop(time.Now())
		}
	}()
	keeper := credential.NewKeeper(guestv1.CredentialDir)
	finished := doors.serve(ctx, g, &preparer{
		options: o, work: work, console: console.New(), ctx: ctx,
		sockets:  domain.Sockets{Serial: inRun("serial0.sock"), Agent: inRun("agent.sock"), VNC: inRun("vnc.sock"), Metrics: inRun("metrics.sock")},
		firmware: domain.ImageFirmware(filepath.Join(guestv1.DiskDir, "nvram.fd")),
		shares:   &share.Server{Dir: guestv1.RunDir, Log: os.Stderr},
		assigned: domain.ParseAssigned(os.Environ()),
		cpus:     sync.OnceValues(func() ([]domain.HostCPU, error) { return cpus.Read(os.DirFS("/proc"), os.DirFS("/sys")) }),
		disks:    disk.Dirs{Disks: guestv1.DiskDir, Images: guestv1.ImageDir, Secrets: guestv1.SecretDir, Claims: guestv1.ClaimDir, Blocks: guestv1.BlockDir, Boot: guestv1.KernelDir, State: guestv1.StateDir, Credentials: guestv1.CredentialDir},
		keeper:   keeper,
	})
	go agent.Watch(ctx, g)
	go keeper.Keep(ctx, g)
	exit := g.Loop(ctx)
	cancel()
	<-finished // watchers have the last state now
	return exit
}

// hugePages returns where the Pod has a file system of huge pages; empty: nowhere.
func hugePages() string {
	var fs syscall.Statfs_t
	const magic = 0x958458f6 // source: the kernel's HUGETLBFS_MAGIC
	if syscall.Statfs(guestv1.HugePageDir, &fs) != nil || uint32(fs.Type) != magic {
		return ""
	}
	return guestv1.HugePageDir
}

func inRun(name string) string { return filepath.Join(guestv1.RunDir, name) }

// doors are the sockets that others connect to.
type doors struct{ serial, console, guest net.Listener }

// open opens them all before anything slow is done: a node agent that connects early waits for its answer instead of
// trying again later.
func open() (d doors, err error) {
	for _, door := range []struct {
		name string
		l    *net.Listener
	}{{"serial0.sock", &d.serial}, {guestv1.ConsoleSocket, &d.console}, {guestv1.GuestSocket, &d.guest}} {
		if *door.l, err = console.Listen(inRun(door.name)); err != nil {
			return d, fmt.Errorf("opening %s: %w", door.name, err)
		}
	}
	return d, nil
}

// serve serves on them until ctx ends; finished is closed when the node agent has had its last answer.
func (d doors) serve(ctx context.Context, g *guest.Guest, p *preparer) (finished <-chan struct{}) {
	go func() {
		if err := p.console.Serve(ctx, d.serial, d.console); err != nil {
			slog.Error("serving the console", "error", err)
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := serve.New(g, p.prepare, p.dump).Serve(ctx, d.guest); err != nil && ctx.Err() == nil {
			slog.Error("serving the node agent", "error", err)
		}
	}()
	return done
}
