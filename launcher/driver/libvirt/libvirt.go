// Package libvirt runs a guest through a libvirtd of its own. It is the only package that reaches the libvirt library,
// which is loaded when it is first used (build tags libvirt_dlopen, libvirt_without_lxc).
package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	libvirtgo "libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"virtstack.io/virtstack/launcher/driver"
)

// Options say where a driver keeps its things.
type Options struct {
	// Dir is a directory for sockets, configuration, logs and cache. It must be short: libvirt's sockets below it have
	// to fit 107 bytes.
	Dir string
	// Log gets what libvirtd has to say.
	Log io.Writer
	// HugePages is where a hugetlbfs is mounted in which guests' memory may be files; empty: nowhere.
	HugePages string
}

// Driver is a driver.Driver on a libvirtd that it started.
type Driver struct {
	dir    string
	daemon *daemon
	conn   *libvirtgo.Connect
	events chan struct{}

	mu      sync.Mutex
	closed  bool // events is
	machine string
	started time.Time
	agent   bool // the guest's is connected
}

var _ driver.Driver = (*Driver)(nil)

// Open starts a libvirtd and returns when it serves. The driver must be closed.
func Open(ctx context.Context, o Options) (*Driver, error) {
	if err := runEvents(); err != nil {
		return nil, fmt.Errorf("starting libvirt's event loop: %w", err)
	}
	daemon, err := startDaemon(o)
	if err != nil {
		return nil, err
	}
	d := &Driver{dir: o.Dir, daemon: daemon, events: make(chan struct{}, 1)}
	if d.conn, err = daemon.connect(ctx); err != nil {
		daemon.stop()
		return nil, err
	}
	changed := func(*libvirtgo.Connect, *libvirtgo.Domain, *libvirtgo.DomainEventLifecycle) { d.changed() }
	if _, err := d.conn.DomainEventLifecycleRegister(nil, changed); err != nil {
		daemon.stop()
		return nil, fmt.Errorf("asking for events: %w", plain(err))
	}
	if _, err := d.conn.DomainEventAgentLifecycleRegister(nil, d.agentChanged); err != nil {
		daemon.stop()
		return nil, fmt.Errorf("asking for events of the agent: %w", plain(err))
	}
	go func() {
		<-daemon.gone
		d.mu.Lock()
		defer d.mu.Unlock()
		close(d.events)
		d.closed = true
	}()
	return d, nil
}

// runEvents runs the library's event loop, which is one for the process and has no end.
var runEvents = sync.OnceValue(func() error {
	if err := libvirtgo.EventRegisterDefaultImpl(); err != nil {
		return err
	}
	go func() {
		for libvirtgo.EventRunDefaultImpl() == nil {
			continue // returns after each event
		}
	}()
	return nil
})

// Close ends libvirtd; a guest that runs goes on without it.
func (d *Driver) Close() { d.daemon.stop() }

// Events implements driver.Driver.
func (d *Driver) Events() <-chan struct{} { return d.events }

func (d *Driver) changed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	select {
	case d.events <- struct{}{}:
	default: // one is waiting already
	}
}

// State implements driver.Driver.
func (d *Driver) State(context.Context) (driver.State, error) {
	dom, err := d.domain()
	if err != nil || dom == nil {
		return driver.State{}, d.failed("reading the guest's state", err)
	}
	defer free(dom)
	state, reason, err := dom.GetState()
	if err != nil {
		return driver.State{}, d.failed("reading the guest's state", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := driver.State{Machine: d.machine, Started: d.started}
	s.Phase, s.Why = phase(state, reason)
	s.Agent = d.agent && s.Phase.Alive()
	return s, nil
}

// phase reads libvirt's state. A guest that is off and whose reason is not known never ran.
func phase(state libvirtgo.DomainState, reason int) (driver.Phase, driver.Why) {
	switch state {
	case libvirtgo.DOMAIN_PAUSED:
		if libvirtgo.DomainPausedReason(reason) == libvirtgo.DOMAIN_PAUSED_DUMP {
			return driver.Running, driver.NotEnded // it goes on by itself
		}
		return driver.Paused, driver.NotEnded
	case libvirtgo.DOMAIN_PMSUSPENDED:
		return driver.Paused, driver.NotEnded
	case libvirtgo.DOMAIN_SHUTDOWN:
		return driver.ShuttingDown, driver.NotEnded
	case libvirtgo.DOMAIN_CRASHED:
		return driver.Ended, driver.Crashed
	case libvirtgo.DOMAIN_SHUTOFF:
		return off(libvirtgo.DomainShutoffReason(reason))
	default:
		return driver.Running, driver.NotEnded
	}
}

func off(reason libvirtgo.DomainShutoffReason) (driver.Phase, driver.Why) {
	switch reason {
	case libvirtgo.DOMAIN_SHUTOFF_UNKNOWN:
		return driver.Defined, driver.NotEnded
	case libvirtgo.DOMAIN_SHUTOFF_SHUTDOWN:
		return driver.Ended, driver.Shutdown
	case libvirtgo.DOMAIN_SHUTOFF_DESTROYED:
		return driver.Ended, driver.Destroyed
	case libvirtgo.DOMAIN_SHUTOFF_CRASHED:
		return driver.Ended, driver.Crashed
	default:
		return driver.Ended, driver.Failed
	}
}

// Define implements driver.Driver.
func (d *Driver) Define(_ context.Context, xml string) error {
	dom, err := d.conn.DomainDefineXML(xml)
	if err != nil {
		return d.failed("storing the guest", err)
	}
	defer free(dom)
	stored, err := dom.GetXMLDesc(libvirtgo.DOMAIN_XML_INACTIVE)
	if err != nil {
		return d.failed("reading the stored guest", err)
	}
	var parsed libvirtxml.Domain
	if err := parsed.Unmarshal(stored); err != nil {
		return fmt.Errorf("reading the stored guest: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.machine = parsed.OS.Type.Machine
	return nil
}

// Start implements driver.Driver.
func (d *Driver) Start(ctx context.Context, first driver.Phase) error {
	s, err := d.State(ctx)
	if err != nil {
		return err
	}
	if s.Phase != driver.Defined {
		return fmt.Errorf("starting the guest: it is %s", s.Phase)
	}
	dom, err := d.must()
	if err != nil {
		return d.failed("starting the guest", err)
	}
	defer free(dom)
	d.mu.Lock()
	d.started = time.Now()
	d.mu.Unlock()
	flags := libvirtgo.DOMAIN_NONE
	if first == driver.Paused {
		flags = libvirtgo.DOMAIN_START_PAUSED
	}
	return d.failed("starting the guest", dom.CreateWithFlags(flags))
}

// Stop implements driver.Driver.
func (d *Driver) Stop(context.Context) error {
	dom, err := d.domain()
	if err != nil || dom == nil {
		return d.failed("stopping the guest", err)
	}
	defer free(dom)
	err = dom.Destroy()
	if of(err, libvirtgo.ERR_OPERATION_INVALID) {
		return nil // it doesn't run
	}
	return d.failed("stopping the guest", err)
}

// Act implements driver.Driver.
func (d *Driver) Act(_ context.Context, act driver.Act) error {
	dom, err := d.must()
	if err != nil {
		return d.failed("asking the guest", err)
	}
	defer free(dom)
	switch act {
	case driver.PressPower:
		return d.failed("pressing the power button", dom.ShutdownFlags(libvirtgo.DOMAIN_SHUTDOWN_ACPI_POWER_BTN))
	case driver.Pause:
		return d.failed("pausing the guest", dom.Suspend())
	case driver.Resume:
		return d.failed("resuming the guest", resume(dom))
	default:
		return fmt.Errorf("asking the guest: unknown act %d", act)
	}
}

// resume lets a paused domain go on; libvirt refuses to with one that runs.
func resume(dom *libvirtgo.Domain) error {
	if state, _, err := dom.GetState(); err != nil || state == libvirtgo.DOMAIN_RUNNING {
		return err
	}
	return dom.Resume()
}

// domain returns the one domain; nil: it was not defined.
func (d *Driver) domain() (*libvirtgo.Domain, error) {
	all, err := d.conn.ListAllDomains(0)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

func (d *Driver) must() (*libvirtgo.Domain, error) {
	dom, err := d.domain()
	if err == nil && dom == nil {
		return nil, errors.New("it is absent")
	}
	return dom, err
}

func free(dom *libvirtgo.Domain) { _ = dom.Free() } // fails only for a handle that is free already
