package launcher

import (
	"log/slog"
	"os"
	"time"

	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/acpi"
	"virtstack.io/virtstack/launcher/cpus"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/guest"
	"virtstack.io/virtstack/launcher/metrics"
)

// filesystems serves the directories that a guest mounts.
func (p *preparer) filesystems(vmi *v1.VirtualMachineInstance) (map[string]string, error) {
	shares, err := p.disks.Shares(vmi)
	if err != nil {
		return nil, err
	}
	return p.shares.Serve(p.ctx, shares)
}

// balloon is what the configuration says of every guest's balloon.
func balloon(n *guestv1.NodeFacts) domain.Balloon {
	b := domain.Balloon{KeepFreePages: n.GetKeepFreePages()}
	if n != nil && n.BalloonPeriod != nil {
		period := uint(n.GetBalloonPeriod())
		b.StatsPeriod = &period
	}
	return b
}

// smbios is what the configuration says of every guest's maker.
func smbios(n *guestv1.NodeFacts) domain.SMBIOS {
	s := n.GetSmbios()
	return domain.SMBIOS{Manufacturer: s.GetManufacturer(), Product: s.GetProduct(), Family: s.GetFamily(), Version: s.GetVersion(), SKU: s.GetSku()}
}

// own adds the facts of a guest that asks for what few do: the CPUs that the Pod was given, ACPI tables, and a place for
// what it keeps.
func (p *preparer) own(vmi *v1.VirtualMachineInstance, facts *domain.Facts) (err error) {
	if facts.Firmware, err = p.disks.Keep(vmi, p.firmware); err != nil {
		return final(err)
	}
	if facts.Tables, err = acpi.Tables(vmi, p.disks.Secrets); err != nil {
		return final(err)
	}
	if c := vmi.Spec.Domain.CPU; c != nil && c.DedicatedCPUPlacement {
		facts.CPUs, err = p.cpus()
	}
	return err
}

// stepAside leaves the CPUs of a guest's vCPUs to them, where QEMU's other threads have their own.
func stepAside(d *libvirtxml.Domain) {
	if d.CPUTune == nil || d.CPUTune.EmulatorPin == nil {
		return
	}
	ids, err := cpus.Parse(d.CPUTune.EmulatorPin.CPUSet)
	if err == nil {
		err = cpus.Confine(ids)
	}
	if err != nil {
		slog.Warn("the launcher runs on CPUs of the guest's", "error", err) // slower, no worse
	}
}

// tellLoad tells a guest that asks for them the figures of its node and of itself: on a channel, on a disk, or on both.
func (p *preparer) tellLoad(vmi *v1.VirtualMachineInstance, sources map[string]domain.Source, d *libvirtxml.Domain, node string) {
	machine := metrics.Guest{VCPUs: d.VCPU.Value, Memory: uint64(d.Memory.Value)} // in bytes, as Convert writes it
	if d.VCPU.Current > 0 {
		machine.VCPUs = d.VCPU.Current
	}
	report := func() ([]byte, error) { return load(node, machine) }
	if vmi.Spec.Domain.Devices.DownwardMetrics != nil {
		go metrics.Serve(p.ctx, p.sockets.Metrics, report)
	}
	for i := range vmi.Spec.Volumes {
		if v := &vmi.Spec.Volumes[i]; v.DownwardMetrics != nil {
			go metrics.Keep(p.ctx, sources[v.Name].Path, report)
		}
	}
}

func load(node string, machine metrics.Guest) ([]byte, error) {
	proc := os.DirFS("/proc")
	host, err := metrics.ReadHost(proc, node)
	if err != nil {
		return nil, err
	}
	if machine.CPUTime, err = metrics.GuestTime(proc); err != nil {
		return nil, err
	}
	return metrics.Report(time.Now(), host, machine)
}

// dump implements serve.Dumps.
func (p *preparer) dump(o guest.Order) (guest.DumpFile, error) {
	f, err := p.disks.Dump(o.Volume, o.File, o.Bytes)
	if err != nil {
		return nil, err // not a nil *disk.Dump, which is a file
	}
	return f, nil
}
