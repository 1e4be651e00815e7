// Package drivertest is what every driver must do, as tests: the fake is as good as the real one where both pass.
package drivertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver"
)

// patience bounds every wait; a loaded machine without KVM starts QEMU in a few seconds.
const patience = 60 * time.Second

// Driver is a driver under test, and two ways to hurt it.
type Driver struct {
	driver.Driver
	// KillDaemon ends what runs guests; KillGuest ends the running guest's process.
	KillDaemon func()
	KillGuest  func()
	// Share serves a directory as a file system of guests and returns the socket.
	Share func(t *testing.T, dir string) (socket string)
}

// Run runs the suite. Each test opens a driver of its own, which open's test cleanup closes.
func Run(t *testing.T, open func(*testing.T) Driver) {
	for name, test := range map[string]func(*testing.T, Driver){
		"a guest's life":                    life,
		"a guest that never ran can change": redefine,
		"a guest that is paused":            pauses,
		"a guest that starts paused":        startsPaused,
		"nothing to start":                  nothing,
		"bad XML":                           badXML,
		"a guest that can't start":          cantStart,
		"a drive without a medium":          emptyDrive,
		"a guest that dies":                 dies,
		"an ended guest never runs again":   noSecondLife,
		"a daemon that dies":                daemonDies,
		"a guest without an agent":          noAgent,
		"a guest with everything":           everything,
		"a guest with UEFI":                 uefi,
		"a guest with secure UEFI":          secureUEFI,
		"a guest with a TPM":                tpm,
		"a guest with UEFI and a TPM":       secureTPM,
		"a guest that keeps its state":      keepsState,
		"a guest with many devices":         emulatedDevices,
		"a guest with ICH9 sound":           ichSound,
		"devices on the PCI root":           onRoot,
		"ports for many interfaces":         manyPorts,
		"a guest with a file system":        filesystem,
		"a guest with CPUs for itself":      ownCPUs,
		"a guest with NUMA cells":           ownNUMA,
		"a guest with a licence":            licensed,
		"a guest's memory":                  dumps,
		"a memory dump that fails":          dumpFails,
		"a memory dump that takes too long": dumpIsCancelled,
		"a paused guest's memory":           dumpsPaused,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func life(t *testing.T, d Driver) {
	want(t, d, driver.Absent, driver.NotEnded)
	must(t, d.Define(t.Context(), guest(t)))
	want(t, d, driver.Defined, driver.NotEnded)
	must(t, d.Start(t.Context(), driver.Running))
	s := await(t, d, driver.Running)
	if s.Machine == "" || s.Started.IsZero() {
		t.Errorf("a running guest has no machine type or start: %+v", s)
	}
	if err := d.Start(t.Context(), driver.Running); err == nil {
		t.Error("a running guest was started again")
	}
	must(t, d.Act(t.Context(), driver.PressPower)) // nobody in this guest listens
	want(t, d, driver.Running, driver.NotEnded)
	must(t, d.Stop(t.Context()))
	want(t, d, driver.Ended, driver.Destroyed)
	must(t, d.Stop(t.Context()))
	want(t, d, driver.Ended, driver.Destroyed)
}

func redefine(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t)))
	must(t, d.Define(t.Context(), guest(t)))
	want(t, d, driver.Defined, driver.NotEnded)
}

func nothing(t *testing.T, d Driver) {
	if err := d.Start(t.Context(), driver.Running); err == nil {
		t.Error("started nothing")
	}
	for _, act := range []driver.Act{driver.PressPower, driver.Pause, driver.Resume} {
		if err := d.Act(t.Context(), act); err == nil {
			t.Errorf("act %d of nothing", act)
		}
	}
	must(t, d.Stop(t.Context()))
	want(t, d, driver.Absent, driver.NotEnded)
}

func noAgent(t *testing.T, d Driver) {
	ask := func(what string) {
		for _, call := range []driver.AgentCall{driver.AskSystem{}, driver.SetKeys{User: "root"}, driver.SetPassword{User: "root", Password: "x"}, driver.Ping{}, driver.Run{Path: "true"}} {
			if info, err := d.Agent(t.Context(), call); !errors.Is(err, driver.ErrNoAgent) {
				t.Errorf("%s, %T: got %+v, %v; want %v", what, call, info, err, driver.ErrNoAgent)
			}
		}
	}
	ask("before there is a guest")
	must(t, d.Define(t.Context(), guest(t)))
	must(t, d.Start(t.Context(), driver.Running))
	await(t, d, driver.Running)
	ask("in a guest without a system")
	if s := await(t, d, driver.Running); s.Agent {
		t.Error("the state tells of an agent")
	}
}

func badXML(t *testing.T, d Driver) {
	twice := `<disk type="file" device="disk"><source file="/x"/><target dev="vda" bus="virtio"/></disk>`
	for _, xml := range []string{"", "<domain", "no XML", strings.Replace(guest(t), "<devices>", "<devices>"+twice+twice, 1)} {
		if err := d.Define(t.Context(), xml); !errors.As(err, &driver.Refusal{}) {
			t.Errorf("stored %q, or that wasn't refused for good: %v", xml, err)
		}
	}
	want(t, d, driver.Absent, driver.NotEnded)
}

func cantStart(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t, withDisk("/nowhere/disk.img"))))
	if err := d.Start(t.Context(), driver.Running); err == nil {
		t.Error("started a guest without its disk")
	}
	want(t, d, driver.Ended, driver.Failed)
}

func emptyDrive(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t, withEmptyDrive)))
	must(t, d.Start(t.Context(), driver.Running))
	await(t, d, driver.Running)
}

func dies(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t)))
	must(t, d.Start(t.Context(), driver.Running))
	await(t, d, driver.Running)
	d.KillGuest()
	if s := await(t, d, driver.Ended); s.Why != driver.Crashed {
		t.Errorf("got %s, want crashed", s.Why)
	}
}

func noSecondLife(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t)))
	must(t, d.Start(t.Context(), driver.Running))
	must(t, d.Stop(t.Context()))
	if err := d.Start(t.Context(), driver.Running); err == nil {
		t.Error("an ended guest was started again")
	}
	must(t, d.Define(t.Context(), guest(t)))
	want(t, d, driver.Ended, driver.Destroyed)
}

func daemonDies(t *testing.T, d Driver) {
	d.KillDaemon()
	deadline := time.After(patience)
	for open := true; open; {
		select {
		case _, open = <-d.Events():
		case <-deadline:
			t.Fatal("nobody told that the daemon is gone")
		}
	}
	if _, err := d.State(t.Context()); !errors.Is(err, driver.ErrGone) {
		t.Errorf("got %v, want %v", err, driver.ErrGone)
	}
}

// edit changes a guest before it is written as XML.
type edit func(*v1.DomainSpec, *domain.Facts)

func withDisk(path string) edit {
	return func(d *v1.DomainSpec, facts *domain.Facts) {
		d.Devices.Disks = []v1.Disk{{Name: "root"}}
		facts.Sources = map[string]domain.Source{"root": {Path: path, Format: domain.Raw}}
	}
}

func withEmptyDrive(d *v1.DomainSpec, _ *domain.Facts) {
	d.Devices.Disks = []v1.Disk{{Name: "drive", DiskDevice: v1.DiskDevice{CDRom: &v1.CDRomTarget{}}}}
}

// guest returns the XML of a small guest with no system, and no disk unless an edit adds one.
func guest(t *testing.T, edits ...edit) string { return annotated(t, nil, edits...) }

func annotated(t *testing.T, annotations map[string]string, edits ...edit) string {
	t.Helper()
	vmi := &v1.VirtualMachineInstance{}
	vmi.Annotations = annotations
	vmi.Namespace, vmi.Name = "drivertest", "guest"
	d := &vmi.Spec.Domain
	d.Firmware = &v1.Firmware{UUID: "5d307ca9-b3ef-428c-8861-06e72d69f223"}
	d.Memory = &v1.Memory{Guest: resource.NewQuantity(32<<20, resource.BinarySI)}
	d.Devices.AutoattachGraphicsDevice, d.Devices.AutoattachSerialConsole = new(bool), new(bool)
	facts := domain.Facts{Sockets: domain.Sockets{Agent: filepath.Join(short(t), "agent.sock")}}
	for _, change := range edits {
		change(d, &facts)
	}
	dom, err := domain.Convert(vmi, facts)
	must(t, err)
	xml, err := dom.Marshal()
	must(t, err)
	return xml
}

// short makes a directory whose path leaves room for the name of a unix socket.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dt")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, d Driver, phase driver.Phase, why driver.Why) {
	t.Helper()
	s, err := d.State(t.Context())
	must(t, err)
	if s.Phase != phase || s.Why != why {
		t.Fatalf("got %s, %s; want %s, %s", s.Phase, s.Why, phase, why)
	}
}

// await looks again after each event until the guest is in a phase.
func await(t *testing.T, d Driver, phase driver.Phase) driver.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		s, err := d.State(ctx)
		must(t, err)
		if s.Phase == phase {
			return s
		}
		select {
		case <-d.Events():
		case <-ctx.Done():
			t.Fatalf("still %s, want %s", s.Phase, phase)
		}
	}
}
