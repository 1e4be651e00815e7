// Package process is what every one of our control plane processes has: flags, signals, a controller-runtime manager
// with health and metrics, leader election, and a user agent that tells the components apart in an audit log.
package process

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"virtstack.io/virtstack/kube/buildid"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/release"
)

// Process describes one component.
type Process struct {
	// Name is the component's: user agent, lease, log name.
	Name string
	// Scheme adds the types that the component uses beside Kubernetes' own and kubevirt.io/v1; may be nil.
	Scheme func(*runtime.Scheme) error
	// Cache trims what the manager's cache holds.
	Cache cache.Options
	// Flags adds the component's own flags; may be nil.
	Flags func(*flag.FlagSet)
	// Elect makes --leader-elect true by default: for components of which only one instance may act.
	Elect bool
	// QPS and Burst limit calls of the API server, in requests per second and requests; zero: 200 and 400.
	QPS   float32
	Burst int
	// FreshReads makes reads from the cache wait until it shows the process's own writes, so that a round never repeats
	// what the one before did. The cache must hold whatever is written, selectors considered.
	FreshReads bool
	// Setup adds the component's controllers and servers to the manager. ctx ends with the process.
	Setup func(ctx context.Context, mgr ctrl.Manager) error
}

type flags struct {
	metrics, probes string
	elect           bool
	log             logging
}

// Execute runs the component until it is told to stop and returns the exit code: 0 after a signal, 1 after an error,
// 2 for wrong flags.
func (p Process) Execute() int {
	f, err := p.parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	log := f.log.logger(os.Stderr).WithName(p.Name)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	log.Info("starting", "version", release.Info(buildid.Own()).GitVersion)
	if err := p.run(ctrl.SetupSignalHandler(), f); err != nil {
		log.Error(err, "stopped")
		return 1
	}
	return 0
}

func (p Process) parse(args []string) (flags, error) {
	f := flags{}
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	config.RegisterFlags(fs)
	fs.StringVar(&f.metrics, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 turns it off")
	fs.StringVar(&f.probes, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 turns them off")
	fs.BoolVar(&f.elect, "leader-elect", p.Elect, "act only while holding the lease "+names.Namespace+"/"+p.Name)
	f.log.bind(fs)
	if p.Flags != nil {
		p.Flags(fs)
	}
	return f, fs.Parse(args)
}

func (p Process) run(ctx context.Context, f flags) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("reading the API server's address: %w", err)
	}
	mgr, err := p.manager(p.Configure(cfg), f)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := p.Setup(ctx, mgr); err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	return mgr.Start(ctx)
}

// Configure returns a copy of cfg with the component's user agent and limits.
func (p Process) Configure(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = p.Name
	cfg.QPS, cfg.Burst = p.QPS, p.Burst
	if cfg.QPS == 0 {
		cfg.QPS, cfg.Burst = 200, 400
	}
	return cfg
}

func (p Process) manager(cfg *rest.Config, f flags) (ctrl.Manager, error) {
	scheme, err := p.scheme()
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         p.Cache,
		Metrics:                       metrics.Options{BindAddress: f.metrics},
		HealthProbeBindAddress:        f.probes,
		LeaderElection:                f.elect,
		LeaderElectionID:              p.Name,
		LeaderElectionNamespace:       names.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &p.FreshReads}},
	})
	if err != nil {
		return nil, err
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

func (p Process) scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	add := []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1.AddToScheme}
	if p.Scheme != nil {
		add = append(add, p.Scheme)
	}
	var errs []error
	for _, a := range add {
		errs = append(errs, a(s))
	}
	return s, errors.Join(errs...)
}
