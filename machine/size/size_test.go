package size_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/size"
)

func vmi(edit ...func(*v1.VirtualMachineInstance)) *v1.VirtualMachineInstance {
	out := &v1.VirtualMachineInstance{}
	out.Spec.Domain.CPU = &v1.CPU{Cores: 1, Sockets: 1, Threads: 1}
	guest, no := resource.MustParse("128Mi"), false
	out.Spec.Domain.Memory = &v1.Memory{Guest: &guest}
	out.Spec.Domain.Devices.Interfaces = []v1.Interface{{Name: "default"}}
	out.Spec.Domain.Devices.AutoattachGraphicsDevice = &no
	for _, e := range edit {
		e(out)
	}
	return out
}

func alone(v *v1.VirtualMachineInstance)     { v.Spec.Domain.Devices.Interfaces = nil }
func dedicated(v *v1.VirtualMachineInstance) { v.Spec.Domain.CPU.DedicatedCPUPlacement = true }

func pages(size string) func(*v1.VirtualMachineInstance) {
	return func(v *v1.VirtualMachineInstance) { v.Spec.Domain.Memory.Hugepages = &v1.Hugepages{PageSize: size} }
}

func TestWhatAPodAsksFor(t *testing.T) {
	emulated, kvm := config.From(nil), config.From(nil)
	emulated.UseEmulation = true
	overcommit := emulated
	overcommit.MemoryOvercommit = 200
	for name, tc := range map[string]podCase{
		"128 MiB under emulation": {
			vmi(), emulated,
			map[k8sv1.ResourceName]string{"cpu": "100m", "memory": "244Mi", "devices.kubevirt.io/tun": "1"},
			map[k8sv1.ResourceName]string{"devices.kubevirt.io/tun": "1"},
		},
		"two probes by the guest's agent": {
			vmi(func(v *v1.VirtualMachineInstance) {
				v.Spec.ReadinessProbe = &v1.Probe{Handler: v1.Handler{Exec: &k8sv1.ExecAction{Command: []string{"true"}}}}
				v.Spec.LivenessProbe = &v1.Probe{Handler: v1.Handler{GuestAgentPing: &v1.GuestAgentPing{}}}
			}), emulated,
			map[k8sv1.ResourceName]string{"cpu": "100m", "memory": "276Mi", "devices.kubevirt.io/tun": "1"},
			map[k8sv1.ResourceName]string{"devices.kubevirt.io/tun": "1"},
		},
		"KVM has no translation cache": {
			vmi(), kvm,
			map[k8sv1.ResourceName]string{"cpu": "100m", "memory": "212Mi", "devices.kubevirt.io/tun": "1", "devices.kubevirt.io/kvm": "1", "devices.kubevirt.io/vhost-net": "1"},
			map[k8sv1.ResourceName]string{"devices.kubevirt.io/tun": "1", "devices.kubevirt.io/kvm": "1", "devices.kubevirt.io/vhost-net": "1"},
		},
		"four vCPUs and a screen": {
			vmi(func(v *v1.VirtualMachineInstance) {
				v.Spec.Domain.CPU.Cores = 4
				v.Spec.Domain.Devices.AutoattachGraphicsDevice = nil
			}), emulated,
			map[k8sv1.ResourceName]string{"cpu": "400m", "memory": "260Mi", "devices.kubevirt.io/tun": "1"},
			map[k8sv1.ResourceName]string{"devices.kubevirt.io/tun": "1"},
		},
		"limits of the VMI": {
			vmi(func(v *v1.VirtualMachineInstance) {
				v.Spec.Domain.Resources.Limits = k8sv1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("256Mi")}
				v.Spec.Domain.Devices.Interfaces = nil
			}), emulated,
			map[k8sv1.ResourceName]string{"cpu": "2", "memory": "372Mi"},
			map[k8sv1.ResourceName]string{"cpu": "2", "memory": "372Mi"},
		},
		"what only the node's administrator knows": {
			vmi(func(v *v1.VirtualMachineInstance) {
				v.Spec.Domain.Resources.Requests = k8sv1.ResourceList{"vendor.example/device": resource.MustParse("2"), "ephemeral-storage": resource.MustParse("1Gi")}
				v.Spec.Domain.Devices.Interfaces = nil
			}), emulated,
			map[k8sv1.ResourceName]string{"cpu": "100m", "memory": "244Mi", "vendor.example/device": "2", "ephemeral-storage": "1Gi"},
			map[k8sv1.ResourceName]string{"vendor.example/device": "2"},
		},
		"overcommitted memory": {
			vmi(), overcommit,
			map[k8sv1.ResourceName]string{"cpu": "100m", "memory": "180Mi", "devices.kubevirt.io/tun": "1"},
			map[k8sv1.ResourceName]string{"devices.kubevirt.io/tun": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) { asks(t, tc) })
	}
}

func TestWhatAGuestWithPartOfItsNodeAsksFor(t *testing.T) {
	emulated := config.From(nil)
	emulated.UseEmulation = true
	overcommit := emulated
	overcommit.MemoryOvercommit = 200
	for name, tc := range map[string]podCase{
		"huge pages, spelt oddly, and memory beside them": {
			vmi(alone, pages("2048Ki"), func(v *v1.VirtualMachineInstance) {
				v.Spec.Domain.Resources.Requests = k8sv1.ResourceList{"memory": resource.MustParse("192Mi")}
			}), overcommit,
			map[k8sv1.ResourceName]string{"cpu": "100m", "memory": "180Mi", "hugepages-2Mi": "128Mi"},
			map[k8sv1.ResourceName]string{"hugepages-2Mi": "128Mi"},
		},
		"huge pages, memory overcommitted": {
			vmi(alone, pages("2Mi")), overcommit,
			map[k8sv1.ResourceName]string{"cpu": "100m", "memory": "116Mi", "hugepages-2Mi": "128Mi"},
			map[k8sv1.ResourceName]string{"hugepages-2Mi": "128Mi"},
		},
		"CPUs for itself": {
			vmi(alone, dedicated), overcommit,
			map[k8sv1.ResourceName]string{"cpu": "1", "memory": "244Mi"},
			map[k8sv1.ResourceName]string{"cpu": "1", "memory": "244Mi"},
		},
		"CPUs for itself, for QEMU and for a pool, and huge pages": {
			vmi(alone, dedicated, pages("1Gi"), func(v *v1.VirtualMachineInstance) {
				n, policy, guest := uint32(2), v1.IOThreadsPolicySupplementalPool, resource.MustParse("2Gi")
				v.Spec.Domain.IOThreadsPolicy, v.Spec.Domain.IOThreads = &policy, &v1.DiskIOThreads{SupplementalPoolThreadCount: &n}
				v.Spec.Domain.CPU.Cores, v.Spec.Domain.CPU.IsolateEmulatorThread = 2, true
				v.Spec.Domain.Memory.Guest = &guest
				v.Annotations = map[string]string{v1.EmulatorThreadCompleteToEvenParity: ""}
				v.Spec.Domain.Resources.OvercommitGuestOverhead = true
			}), emulated,
			map[k8sv1.ResourceName]string{"cpu": "6", "memory": "120Mi", "hugepages-1Gi": "2Gi"},
			map[k8sv1.ResourceName]string{"cpu": "6", "memory": "120Mi", "hugepages-1Gi": "2Gi"},
		},
	} {
		t.Run(name, func(t *testing.T) { asks(t, tc) })
	}
}

// podCase is a VMI and what its Pod asks for.
type podCase struct {
	vmi              *v1.VirtualMachineInstance
	cfg              config.Config
	requests, limits map[k8sv1.ResourceName]string
}

func asks(t *testing.T, tc podCase) {
	t.Helper()
	got := size.Pod(tc.vmi, tc.cfg)
	if diff := cmp.Diff(tc.requests, amounts(got.Requests)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tc.limits, amounts(got.Limits)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func amounts(list k8sv1.ResourceList) map[k8sv1.ResourceName]string {
	out := map[k8sv1.ResourceName]string{}
	for k, q := range list {
		out[k] = q.String()
	}
	return out
}

func TestCPUsBesideVCPUs(t *testing.T) {
	pool := func(n uint32) func(*v1.VirtualMachineInstance) {
		return func(v *v1.VirtualMachineInstance) {
			policy := v1.IOThreadsPolicySupplementalPool
			v.Spec.Domain.IOThreadsPolicy, v.Spec.Domain.IOThreads = &policy, &v1.DiskIOThreads{SupplementalPoolThreadCount: &n}
		}
	}
	isolated := func(v *v1.VirtualMachineInstance) { v.Spec.Domain.CPU.IsolateEmulatorThread = true }
	even := func(v *v1.VirtualMachineInstance) {
		v.Annotations = map[string]string{v1.EmulatorThreadCompleteToEvenParity: ""}
	}
	for name, tc := range map[string]struct {
		vmi            *v1.VirtualMachineInstance
		vcpus          int64
		pool, emulator int64
	}{
		"nothing asked":            {vmi(even), 2, 0, 0},
		"a pool":                   {vmi(pool(3)), 2, 3, 0},
		"a pool of too many":       {vmi(pool(1 << 31)), 2, 4096, 0},
		"isolated":                 {vmi(isolated), 2, 0, 1},
		"isolated, even for odd":   {vmi(isolated, even), 3, 0, 1},
		"isolated, even for even":  {vmi(isolated, even), 2, 0, 2},
		"isolated, even with pool": {vmi(isolated, even, pool(1)), 3, 1, 2},
	} {
		p := size.PoolCPUs(tc.vmi)
		if e := size.EmulatorCPUs(tc.vmi, tc.vcpus+p); p != tc.pool || e != tc.emulator {
			t.Errorf("%s: %d for the pool and %d for the emulator, want %d and %d", name, p, e, tc.pool, tc.emulator)
		}
	}
}

func TestMemoryReservedBesideTheGuests(t *testing.T) {
	wide, absurd := config.From(nil), config.From(nil)
	wide.OverheadRatio, absurd.OverheadRatio = 1.5, 1e300
	reserves := func(amount string) func(*v1.VirtualMachineInstance) {
		return func(v *v1.VirtualMachineInstance) {
			q := resource.MustParse(amount)
			v.Spec.Domain.Memory.ReservedOverhead = &v1.ReservedOverhead{AddedOverhead: &q}
		}
	}
	for name, tc := range map[string]struct {
		vmi  *v1.VirtualMachineInstance
		cfg  config.Config
		want string
	}{
		"none":               {vmi(), config.From(nil), "84Mi"},
		"by the VMI":         {vmi(reserves("36Mi")), config.From(nil), "120Mi"},
		"by both":            {vmi(reserves("36Mi")), wide, "180Mi"},
		"less than nothing":  {vmi(reserves("-1Gi")), config.From(nil), "84Mi"},
		"more than there is": {vmi(reserves("8Ei")), absurd, "1Pi"},
	} {
		if got := size.Overhead(tc.vmi, tc.cfg); got.String() != tc.want {
			t.Errorf("%s: got %s, want %s", name, got.String(), tc.want)
		}
	}
}
