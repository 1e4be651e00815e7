package launcher

import (
	"encoding/json"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/credential"
	"virtstack.io/virtstack/launcher/disk"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver/fake"
	"virtstack.io/virtstack/launcher/guest"
	"virtstack.io/virtstack/launcher/serve"
	"virtstack.io/virtstack/launcher/share"
)

var web = options{namespace: "vms", name: "web", uid: "u-1", grace: 30 * time.Second}

func TestCommandLine(t *testing.T) {
	for line, tc := range map[string]struct {
		want options
		err  bool
	}{
		"--namespace vms --name web --uid u-1":                            {want: web},
		"--namespace vms --name web --uid u-1 --grace-period-seconds 120": {want: options{"vms", "web", "u-1", 2 * time.Minute}},
		"--namespace vms --name web --uid u-1 --grace-period-seconds 0":   {want: options{"vms", "web", "u-1", 0}},
		"--grace-period-seconds soon":                                     {err: true},
		"--credentials /etc/passwd":                                       {err: true},
	} {
		got, err := parse(strings.Fields(line))
		if (err != nil) != tc.err || !tc.err && got != tc.want {
			t.Errorf("%s: got %+v, %v; want %+v", line, got, err, tc.want)
		}
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: got %v, want %v", err, flag.ErrHelp)
	}
}

// vmi returns the VMI of this launcher, with no disk and no network.
func vmi(change func(*v1.VirtualMachineInstance)) *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{}
	vmi.Namespace, vmi.Name, vmi.UID = web.namespace, web.name, types.UID(web.uid)
	vmi.Spec.Domain.Memory = &v1.Memory{Guest: resource.NewQuantity(64<<20, resource.BinarySI)}
	change(vmi)
	return vmi
}

func TestOnlyItsOwnVMIIsPrepared(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1.VirtualMachineInstance)
		code   codes.Code // Aborted leaves the guest that is there alone, InvalidArgument is final
		want   string     // in the error
	}{
		"its own":           {func(*v1.VirtualMachineInstance) {}, codes.OK, ""},
		"a later one":       {func(v *v1.VirtualMachineInstance) { v.UID = "u-2" }, codes.Aborted, "UID u-2"},
		"another name":      {func(v *v1.VirtualMachineInstance) { v.Name = "db" }, codes.Aborted, "vms/db"},
		"another namespace": {func(v *v1.VirtualMachineInstance) { v.Namespace = "other" }, codes.Aborted, "other/web"},
		"a volume's name":   {func(v *v1.VirtualMachineInstance) { v.Spec.Volumes = []v1.Volume{{Name: "../x"}} }, codes.InvalidArgument, "spec.volumes[0].name"},
		"too many CPUs":     {func(v *v1.VirtualMachineInstance) { v.Spec.Domain.CPU = &v1.CPU{Cores: 5000} }, codes.InvalidArgument, "spec.domain.cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &preparer{
				options: web, work: t.TempDir(), ctx: t.Context(), sockets: domain.Sockets{Agent: "/a"},
				disks:  disk.Dirs{Disks: t.TempDir(), Images: t.TempDir(), Secrets: t.TempDir()},
				shares: &share.Server{Dir: t.TempDir()}, keeper: credential.NewKeeper(credential.Secrets(t.TempDir())),
			}
			request, err := json.Marshal(vmi(tc.change))
			if err != nil {
				t.Fatal(err)
			}
			d := fake.Open()
			s := serve.New(guest.New(d, time.Minute), p.prepare, p.dump)
			_, err = s.SyncVirtualMachine(t.Context(), &guestv1.SyncVirtualMachineRequest{Protocol: guestv1.Protocol, Vmi: request})
			if tc.code == codes.OK {
				if err != nil || d.Starts() != 1 {
					t.Errorf("got %v and %d starts, want one", err, d.Starts())
				}
				return
			}
			if status.Code(err) != tc.code || !strings.Contains(err.Error(), tc.want) || d.Starts() != 0 {
				t.Errorf("got %v and %d starts, want %s with %q", err, d.Starts(), tc.code, tc.want)
			}
		})
	}
}
