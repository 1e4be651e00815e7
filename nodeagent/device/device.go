// Package device offers the node's devices to launcher Pods through the kubelet's device plugin interface.
package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/wait"
	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const kubeletSocket = "kubelet.sock"

// Plugins serves devices to the kubelet and registers them anew whenever the kubelet has restarted.
type Plugins struct {
	// Devices are offered where they are on the node.
	Devices []Device
	// Count is how many of each the kubelet may hand out.
	Count int
	// Dir is the kubelet's device plugin directory, CDI the container runtime's directory of CDI specifications.
	Dir, CDI string
	// Changed is called when Serving has changed.
	Changed func()

	serving atomic.Bool
}

// Serving is true while every device is registered with the kubelet.
func (p *Plugins) Serving() bool { return p.serving.Load() }

// Start serves until ctx ends. An error ends only an attempt: a node whose kubelet is away gets its devices later.
func (p *Plugins) Start(ctx context.Context) error {
	retry := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 4, Cap: 5 * time.Second}
	err := retry.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := p.serve(ctx); err != nil {
			log.FromContext(ctx).Error(err, "serving devices")
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// NeedLeaderElection is false: each node has its own devices.
func (*Plugins) NeedLeaderElection() bool { return false }

// serve registers the devices and returns when the kubelet has restarted, or with an error.
func (p *Plugins) serve(ctx context.Context) error {
	present, err := p.present()
	if err != nil {
		return err
	}
	if err := p.sweep(present); err != nil {
		return err
	}
	restarted, err := p.watch()
	if err != nil {
		return err
	}
	defer restarted.Close()
	stop := make(chan struct{})
	defer close(stop)
	var servers []*grpc.Server
	defer func() {
		p.set(false)
		for _, s := range servers {
			s.Stop()
		}
	}()
	for _, d := range present {
		s, err := p.offer(ctx, &plugin{device: d, count: p.Count, stop: stop})
		if s != nil {
			servers = append(servers, s)
		}
		if err != nil {
			return fmt.Errorf("offering %s: %w", d.Resource, err)
		}
	}
	p.set(true)
	return p.await(ctx, restarted)
}

// present returns the devices that are on the node, after telling the container runtime of them.
func (p *Plugins) present() ([]Device, error) {
	var present []Device
	for _, d := range p.Devices {
		_, err := os.Stat(d.Path)
		switch {
		case err == nil:
			present = append(present, d)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("looking for %s: %w", d.Path, err)
		}
	}
	dir, err := os.OpenRoot(p.CDI)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of CDI specifications: %w", err)
	}
	defer dir.Close()
	return present, writeCDI(dir, present)
}

func endpoint(d Device) string { return "virtstack-" + d.Name + ".sock" }

// sweep removes the sockets of a node agent that was killed.
func (p *Plugins) sweep(devices []Device) error {
	for _, d := range devices {
		if err := os.Remove(filepath.Join(p.Dir, endpoint(d))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// offer serves a plugin on a socket of its own and registers it.
func (p *Plugins) offer(ctx context.Context, pl *plugin) (*grpc.Server, error) {
	l, err := net.Listen("unix", filepath.Join(p.Dir, endpoint(pl.device)))
	if err != nil {
		return nil, err
	}
	s := grpc.NewServer()
	dp.RegisterDevicePluginServer(s, pl)
	go s.Serve(l)
	return s, p.register(ctx, &dp.RegisterRequest{Version: dp.Version, Endpoint: endpoint(pl.device), ResourceName: pl.device.Resource})
}

func (p *Plugins) register(ctx context.Context, r *dp.RegisterRequest) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := grpc.NewClient("unix:"+filepath.Join(p.Dir, kubeletSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = dp.NewRegistrationClient(c).Register(ctx, r)
	return err
}

func (p *Plugins) watch() (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching for the kubelet's restart: %w", err)
	}
	if err := w.Add(p.Dir); err != nil {
		w.Close()
		return nil, fmt.Errorf("watching for the kubelet's restart: %w", err)
	}
	return w, nil
}

// await returns when the kubelet has made its socket anew, or somebody removed one of ours: the kubelet does that as
// it starts, and forgets what was registered.
func (p *Plugins) await(ctx context.Context, w *fsnotify.Watcher) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.Errors:
			return fmt.Errorf("watching for the kubelet's restart: %w", err)
		case e := <-w.Events:
			name := filepath.Base(e.Name)
			if e.Has(fsnotify.Create) && name == kubeletSocket || e.Has(fsnotify.Remove) && strings.HasPrefix(name, "virtstack-") {
				return nil
			}
		}
	}
}

func (p *Plugins) set(serving bool) {
	if p.serving.Swap(serving) != serving && p.Changed != nil {
		p.Changed()
	}
}
