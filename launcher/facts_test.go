package launcher

import (
	"strings"
	"testing"

	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/credential"
	"virtstack.io/virtstack/launcher/disk"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/share"
)

// What the node agent says of the maker, and the CPUs that the Pod has, are in the guest.
func TestFactsReachTheGuest(t *testing.T) {
	p := &preparer{
		options: web, work: t.TempDir(), ctx: t.Context(), sockets: domain.Sockets{Agent: "/a"},
		disks:  disk.Dirs{Disks: t.TempDir(), Images: t.TempDir(), Secrets: t.TempDir()},
		shares: &share.Server{Dir: t.TempDir()}, keeper: credential.NewKeeper(credential.Secrets(t.TempDir())),
		cpus: func() ([]domain.HostCPU, error) { return []domain.HostCPU{{ID: 7, Core: 3}}, nil },
	}
	own := vmi(func(v *v1.VirtualMachineInstance) { v.Spec.Domain.CPU = &v1.CPU{DedicatedCPUPlacement: true} })
	node := &guestv1.NodeFacts{Smbios: &guestv1.Smbios{Manufacturer: "M", Product: "P", Family: "F", Version: "V", Sku: "S"}}
	got, err := p.prepare(t.Context(), own, &guestv1.SyncVirtualMachineRequest{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<vcpupin vcpu="0" cpuset="7">`, `"manufacturer">M<`, `"product">P<`, `"family">F<`, `"version">V<`, `"sku">S<`} {
		if !strings.Contains(got.XML, want) {
			t.Errorf("no %s in\n%s", want, got.XML)
		}
	}
}
