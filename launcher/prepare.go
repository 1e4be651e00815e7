package launcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/console"
	"virtstack.io/virtstack/launcher/credential"
	"virtstack.io/virtstack/launcher/disk"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver/libvirt"
	"virtstack.io/virtstack/launcher/serve"
	"virtstack.io/virtstack/launcher/share"
)

// preparer makes what a guest needs before it is started: disks, leases, the domain.
type preparer struct {
	options
	work    string
	sockets domain.Sockets
	// firmware is what the launcher's image has, and where this guest's variables are.
	firmware domain.Firmware
	console  *console.Console
	disks    disk.Dirs
	shares   *share.Server
	// assigned are the node's devices that the Pod has, as device plugins told.
	assigned map[string]domain.Assigned
	// cpus are those that the Pod was given.
	cpus   func() ([]domain.HostCPU, error)
	keeper *credential.Keeper
	// ctx is the launcher's: DHCP servers and the copy of the console live as long as it does.
	ctx context.Context

	mu      sync.Mutex
	serving map[string]bool // protocols and bridges with a server
	copying sync.Once
	telling sync.Once
	aside   sync.Once
}

// prepare implements serve.Prepare.
func (p *preparer) prepare(ctx context.Context, vmi *v1.VirtualMachineInstance, r *guestv1.SyncVirtualMachineRequest) (serve.Prepared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if vmi.Namespace != p.namespace || vmi.Name != p.name || string(vmi.UID) != p.uid {
		return serve.Prepared{}, fmt.Errorf("this is the launcher of VMI %s/%s with UID %s, not of %s/%s with UID %s", p.namespace, p.name, p.uid, vmi.Namespace, vmi.Name, vmi.UID)
	}
	if err := libvirt.SeedCache(p.work, r.GetNode().GetCapabilityCache()); err != nil {
		slog.Warn("libvirt has to ask QEMU for its capabilities", "error", err) // slower, no worse
	}
	sources, err := p.disks.Prepare(ctx, vmi)
	if err != nil {
		return serve.Prepared{}, final(err)
	}
	kernel, err := p.disks.Kernel(vmi)
	if err != nil {
		return serve.Prepared{}, final(err)
	}
	filesystems, err := p.filesystems(vmi)
	if err != nil {
		return serve.Prepared{}, final(err)
	}
	interfaces, err := p.interfaces(r.GetInterfaces())
	if err != nil {
		return serve.Prepared{}, err
	}
	facts := domain.Facts{
		KVM: r.GetNode().GetKvm(), Sources: sources, Interfaces: interfaces, Sockets: p.sockets, Firmware: p.firmware,
		Filesystems: filesystems, Assigned: p.assigned, Balloon: balloon(r.GetNode()), Kernel: kernel, SMBIOS: smbios(r.GetNode()),
	}
	if err := p.own(vmi, &facts); err != nil {
		return serve.Prepared{}, err
	}
	d, err := domain.Convert(vmi, facts)
	if err != nil {
		return serve.Prepared{}, serve.Refuse(err)
	}
	xml, err := d.Marshal()
	if err != nil {
		return serve.Prepared{}, fmt.Errorf("writing the domain: %w", err)
	}
	p.keeper.Want(vmi.Spec.AccessCredentials)
	if log := vmi.Spec.Domain.Devices.LogSerialConsole; log != nil && *log {
		p.copying.Do(func() { go p.console.Copy(p.ctx, os.Stdout) })
	}
	p.aside.Do(func() { stepAside(d) }) // once: later there are the guest's own threads
	p.telling.Do(func() { p.tellLoad(vmi, sources, d, r.GetNode().GetName()) })
	return serve.Prepared{XML: xml, Targets: domain.DiskTargets(d), NICs: domain.NICs(d)}, nil
}

// final makes an error of the disks a refusal, unless it only says that something isn't there yet: that may come.
func final(err error) error {
	if refusal := (*field.Error)(nil); errors.As(err, &refusal) && refusal.Type != field.ErrorTypeNotFound {
		return serve.Refuse(err)
	}
	return err
}
