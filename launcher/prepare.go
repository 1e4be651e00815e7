package launcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/console"
	"virtstack.io/virtstack/launcher/dhcp"
	"virtstack.io/virtstack/launcher/disk"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver/libvirt"
	"virtstack.io/virtstack/launcher/serve"
)

// preparer makes what a guest needs before it is started: disks, leases, the domain.
type preparer struct {
	options
	work    string
	sockets domain.Sockets
	console *console.Console
	disks   disk.Dirs
	// ctx is the launcher's: DHCP servers and the copy of the console live as long as it does.
	ctx context.Context

	mu      sync.Mutex
	serving map[string]bool // bridges with a DHCP server
	copying sync.Once
}

// prepare implements serve.Prepare.
func (p *preparer) prepare(ctx context.Context, vmi *v1.VirtualMachineInstance, r *guestv1.SyncVirtualMachineRequest) (serve.Prepared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if vmi.Namespace != p.namespace || vmi.Name != p.name || string(vmi.UID) != p.uid {
		return serve.Prepared{}, serve.Refuse(fmt.Errorf("this is the launcher of VMI %s/%s with UID %s, not of %s/%s with UID %s", p.namespace, p.name, p.uid, vmi.Namespace, vmi.Name, vmi.UID))
	}
	if err := libvirt.SeedCache(p.work, r.GetNode().GetCapabilityCache()); err != nil {
		slog.Warn("libvirt has to ask QEMU for its capabilities", "error", err) // slower, no worse
	}
	sources, err := p.disks.Prepare(ctx, vmi)
	if refusal := (*field.Error)(nil); errors.As(err, &refusal) {
		return serve.Prepared{}, serve.Refuse(err)
	}
	if err != nil {
		return serve.Prepared{}, err
	}
	interfaces, err := p.interfaces(r.GetInterfaces())
	if err != nil {
		return serve.Prepared{}, err
	}
	d, err := domain.Convert(vmi, domain.Facts{KVM: r.GetNode().GetKvm(), Sources: sources, Interfaces: interfaces, Sockets: p.sockets})
	if err != nil {
		return serve.Prepared{}, serve.Refuse(err)
	}
	xml, err := d.Marshal()
	if err != nil {
		return serve.Prepared{}, fmt.Errorf("writing the domain: %w", err)
	}
	if log := vmi.Spec.Domain.Devices.LogSerialConsole; log != nil && *log {
		p.copying.Do(func() { go p.console.Copy(p.ctx, os.Stdout) })
	}
	return serve.Prepared{XML: xml, Targets: domain.DiskTargets(d)}, nil
}

func (p *preparer) interfaces(list []*guestv1.Interface) (map[string]domain.Interface, error) {
	resolver, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	facts := map[string]domain.Interface{}
	for _, i := range list {
		facts[i.GetName()] = domain.Interface{Tap: i.GetTap(), MAC: i.GetMac(), MTU: uint(i.GetMtu())}
		if i.GetLease() == nil || p.serving[i.GetLease().GetBridge()] {
			continue
		}
		lease, err := dhcp.From(i, resolver)
		if err != nil {
			return nil, fmt.Errorf("preparing interface %q: %w", i.GetName(), err)
		}
		if err := p.serve(i.GetLease().GetBridge(), lease); err != nil {
			return nil, fmt.Errorf("preparing interface %q: %w", i.GetName(), err)
		}
	}
	return facts, nil
}

// serve hands out the lease for as long as the launcher lives.
func (p *preparer) serve(bridge string, l dhcp.Lease) error {
	server, err := dhcp.Listen(bridge, l)
	if err != nil {
		return err
	}
	if p.serving == nil {
		p.serving = map[string]bool{}
	}
	p.serving[bridge] = true
	go func() {
		if err := server.Serve(p.ctx); err != nil {
			slog.Error("the guest gets no address", "error", err)
		}
	}()
	return nil
}
