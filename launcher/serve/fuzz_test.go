package serve_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver/fake"
	"virtstack.io/virtstack/launcher/guest"
	"virtstack.io/virtstack/launcher/serve"
)

// FuzzSync holds that no VMI, whatever its bytes, makes the launcher panic, and that it refuses with a code of its own or
// writes XML that can be read again. Everything that a VMI refers to is there.
func FuzzSync(f *testing.F) {
	seeds, err := filepath.Glob("../domain/testdata/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range seeds {
		f.Add(seed(f, file), true)
	}
	logger := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	f.Cleanup(func() { slog.SetDefault(logger) })
	f.Fuzz(func(t *testing.T, vmi []byte, kvm bool) {
		s := serve.New(guest.New(fake.Open(), time.Minute), convert, dumps)
		r := &guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: vmi, Node: &guestv1.NodeFacts{Kvm: kvm}}
		resp, err := s.SyncVirtualMachine(t.Context(), r)
		if err != nil {
			if code := status.Code(err); code != codes.InvalidArgument {
				t.Errorf("refused with %s: %v", code, err)
			}
			return
		}
		if _, err := proto.Marshal(resp); err != nil {
			t.Errorf("the answer can't be sent: %v", err)
		}
	})
}

// seed returns the VMI of a golden case as JSON.
func seed(f *testing.F, file string) []byte {
	f.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	var in struct{ VMI any }
	if err := yaml.Unmarshal(text, &in); err != nil {
		f.Fatal(err)
	}
	vmi, err := yaml.Marshal(in.VMI)
	if err != nil {
		f.Fatal(err)
	}
	if vmi, err = yaml.YAMLToJSON(vmi); err != nil {
		f.Fatal(err)
	}
	return vmi
}

// convert is a launcher's preparation without disks and networks of its own.
func convert(_ context.Context, vmi *v1.VirtualMachineInstance, r *guestv1.SyncVirtualMachineRequest) (serve.Prepared, error) {
	facts := domain.Facts{
		KVM: r.GetNode().GetKvm(), Sources: map[string]domain.Source{}, Interfaces: map[string]domain.Interface{},
		Sockets: domain.Sockets{Serial: "/s", Agent: "/a", VNC: "/v", Metrics: "/m"}, Kernel: domain.Kernel{Kernel: "/k", Initrd: "/i"},
		Filesystems: map[string]string{}, Assigned: domain.ParseAssigned([]string{"PCI_RESOURCE_D=0000:81:00.0", "MDEV_PCI_RESOURCE_D=x"}),
	}
	for _, f := range vmi.Spec.Domain.Devices.Filesystems {
		facts.Filesystems[f.Name] = "/f"
	}
	for i := range vmi.Spec.Volumes {
		facts.Sources[vmi.Spec.Volumes[i].Name] = domain.Source{Path: "/dev/null", Format: domain.Raw}
	}
	for i := range vmi.Spec.Domain.Devices.Interfaces {
		facts.Interfaces[vmi.Spec.Domain.Devices.Interfaces[i].Name] = domain.Interface{Tap: "tap0", MAC: "02:00:5e:00:53:0a"}
	}
	d, err := domain.Convert(vmi, facts)
	if err != nil {
		return serve.Prepared{}, serve.Refuse(err)
	}
	xml, err := d.Marshal()
	return serve.Prepared{XML: xml, Targets: domain.DiskTargets(d)}, err
}
