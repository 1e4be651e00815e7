// Package fake is a driver without a hypervisor: guests that are nothing but their state. It behaves as the real one
// where a test can see, which drivertest proves.
package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"libvirt.org/go/libvirtxml"

	"virtstack.io/virtstack/launcher/driver"
)

// Driver is a driver.Driver in memory. Its other methods are the guest's and the world's side.
type Driver struct {
	mu     sync.Mutex
	events chan struct{}
	gone   bool
	deaf   bool
	held   bool
	guest  *libvirtxml.Domain
	state  driver.State
	starts int
	agent  func(driver.AgentCall) (driver.AgentInfo, error)
}

var _ driver.Driver = (*Driver)(nil)

// Open returns a driver with no guest.
func Open() *Driver { return &Driver{events: make(chan struct{}, 1)} }

// Die ends the hypervisor daemon; the guest goes on unseen.
func (d *Driver) Die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.gone {
		d.gone = true
		close(d.events)
	}
}

// End ends the running guest from inside, for a reason.
func (d *Driver) End(why driver.Why) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state.Phase.Alive() {
		d.end(why)
	}
}

// Deafen makes the guest's system ignore the power button.
func (d *Driver) Deafen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deaf = true
}

// Connect connects an agent in the guest, which answers calls; nil: it hangs up.
func (d *Driver) Connect(agent func(driver.AgentCall) (driver.AgentInfo, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agent, d.state.Agent = agent, agent != nil
	d.changed()
}

// Starts counts how often a guest was started.
func (d *Driver) Starts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.starts
}

// Events implements driver.Driver.
func (d *Driver) Events() <-chan struct{} { return d.events }

// State implements driver.Driver.
func (d *Driver) State(context.Context) (driver.State, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return driver.State{}, fmt.Errorf("reading the guest's state: %w", driver.ErrGone)
	}
	return d.state, nil
}

// Define implements driver.Driver.
func (d *Driver) Define(_ context.Context, xml string) error {
	var guest libvirtxml.Domain
	if err := guest.Unmarshal(xml); err != nil {
		return fmt.Errorf("storing the guest: %w", driver.Refusal{Err: err})
	}
	if target, twice := repeated(guest.Devices); twice {
		return fmt.Errorf("storing the guest: %w", driver.Refusal{Err: fmt.Errorf("XML error: target '%s' duplicated", target)})
	}
	return d.with("storing the guest", func() error {
		if d.state.Phase == driver.Absent {
			d.state.Phase = driver.Defined
		}
		d.guest, d.state.Machine = &guest, guest.OS.Type.Machine
		return nil
	})
}

// repeated returns a device name that two disks have.
func repeated(devices *libvirtxml.DomainDeviceList) (string, bool) {
	if devices == nil {
		return "", false
	}
	seen := map[string]bool{}
	for _, disk := range devices.Disks {
		if t := disk.Target; t != nil && seen[t.Dev] {
			return t.Dev, true
		} else if t != nil {
			seen[t.Dev] = true
		}
	}
	return "", false
}

// Start implements driver.Driver. A guest with a disk that isn't there ends at once.
func (d *Driver) Start(_ context.Context, first driver.Phase) error {
	return d.with("starting the guest", func() error {
		if d.state.Phase != driver.Defined {
			return fmt.Errorf("it is %s", d.state.Phase)
		}
		d.starts++
		d.state.Started = time.Now()
		for _, disk := range d.guest.Devices.Disks {
			if err := there(disk.Source); err != nil {
				d.end(driver.Failed)
				return err
			}
		}
		d.state.Phase = first
		d.changed()
		return nil
	})
}

func there(s *libvirtxml.DomainDiskSource) error {
	if s == nil || s.File == nil || s.File.File == "" { // a drive without a medium reads as a file without a name
		return nil
	}
	_, err := os.Stat(s.File.File)
	return err
}

// Stop implements driver.Driver.
func (d *Driver) Stop(context.Context) error {
	return d.with("stopping the guest", func() error {
		if d.state.Phase.Alive() {
			d.end(driver.Destroyed)
		}
		return nil
	})
}

// Act implements driver.Driver. Only a guest with a disk has a system that listens.
func (d *Driver) Act(_ context.Context, act driver.Act) error {
	return d.with("asking the guest", func() error {
		if !d.state.Phase.Alive() {
			return fmt.Errorf("it is %s", d.state.Phase)
		}
		switch act {
		case driver.PressPower:
			return d.press()
		case driver.Pause:
			return d.turn(driver.Running, driver.Paused)
		case driver.Resume:
			return d.turn(driver.Paused, driver.Running)
		}
		return errors.New("unknown act")
	})
}

func (d *Driver) press() error {
	if d.state.Phase == driver.Paused {
		return errors.New("it is paused")
	}
	if !d.deaf && len(d.guest.Devices.Disks) > 0 {
		d.end(driver.Shutdown)
	}
	return nil
}

// turn moves the guest from one phase to another; one that is in neither stays.
func (d *Driver) turn(from, to driver.Phase) error {
	if d.state.Phase == from {
		d.state.Phase = to
		d.changed()
	}
	return nil
}

// Agent implements driver.Driver.
func (d *Driver) Agent(_ context.Context, call driver.AgentCall) (info driver.AgentInfo, err error) {
	err = d.with("asking the agent", func() error {
		if d.agent == nil || !d.state.Phase.Alive() {
			return driver.ErrNoAgent
		}
		info, err = d.agent(call)
		return err
	})
	return info, err
}

// Dump implements driver.Driver: the memory of a guest that has no system is nothing but zeros. A dump that Hold holds up
// goes on when ctx ends.
func (d *Driver) Dump(ctx context.Context, w io.Writer) error {
	size, held := int64(0), false
	err := d.with("dumping the guest's memory", func() error {
		if !d.state.Phase.Alive() {
			return fmt.Errorf("it is %s", d.state.Phase)
		}
		if m := d.guest.Memory; m != nil {
			size = int64(m.Value) // in bytes, as Convert writes it
		}
		held = d.held
		return nil
	})
	if err != nil {
		return err
	}
	if held {
		<-ctx.Done()
	}
	core := io.MultiReader(strings.NewReader("\x7fELF"), io.LimitReader(zeros{ctx}, size))
	if _, err := io.Copy(struct{ io.Writer }{w}, core); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// zeros reads as zeros until ctx ends.
type zeros struct{ ctx context.Context }

func (z zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), context.Cause(z.ctx)
}

// Hold makes dumps of the guest's memory take until they are cancelled.
func (d *Driver) Hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = true
}

func (d *Driver) with(doing string, do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return fmt.Errorf("%s: %w", doing, driver.ErrGone)
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

func (d *Driver) end(why driver.Why) {
	d.state.Phase, d.state.Why = driver.Ended, why
	d.agent, d.state.Agent = nil, false
	d.changed()
}

func (d *Driver) changed() {
	if d.gone {
		return
	}
	select {
	case d.events <- struct{}{}:
	default: // one is waiting already
	}
}
