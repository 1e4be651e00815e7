package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

func TestInterfacesOfTheStatus(t *testing.T) {
	bridge := v1.InterfaceBindingMethod{Bridge: &v1.InterfaceBridge{}}
	s := Seen{Node: here, Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING), VMI: vmi(v1.Running, func(m *v1.VirtualMachineInstance) {
		m.Spec.Domain.Devices.Interfaces = []v1.Interface{
			{Name: "red", InterfaceBindingMethod: bridge, State: v1.InterfaceStateLinkDown},
			{Name: "blue", InterfaceBindingMethod: bridge},
			{Name: "gone", InterfaceBindingMethod: bridge, State: v1.InterfaceStateAbsent},
			{Name: "main", InterfaceBindingMethod: bridge},
		}
		multus := v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: "x"}}
		m.Spec.Networks = []v1.Network{
			{Name: "red", NetworkSource: multus}, {Name: "blue", NetworkSource: multus}, {Name: "gone", NetworkSource: multus},
			{Name: "main", NetworkSource: v1.NetworkSource{Pod: &v1.PodNetwork{}}},
		}
	})}
	s.Guest.Nics = []*guestv1.Nic{
		{Name: "red", Mac: "02:00:5e:00:53:01", LinkDown: true},
		{Name: "blue", Mac: "<b>", Queues: 1 << 30},
		{Name: "main", Mac: "0A:58:0A:58:00:07", Queues: 4},
	}
	s.Pod.Annotations = map[string]string{NetworkStatus: `[{"name":"pods","interface":"eth0","ips":["10.88.0.7"],"default":true},
		{"name":"ns/x","interface":"podb1f51a511f1","ips":["192.168.9.2","nonsense"],"mac":"02:00:5e:00:53:01"}]`}
	want := []v1.VirtualMachineInstanceNetworkInterface{
		{Name: "main", MAC: "0a:58:0a:58:00:07", IP: "10.88.0.7", IPs: []string{"10.88.0.7", "fd00::7"}, PodInterfaceName: "eth0", InfoSource: "domain", QueueCount: 4, LinkState: "up"},
		{Name: "red", MAC: "02:00:5e:00:53:01", IP: "192.168.9.2", IPs: []string{"192.168.9.2"}, PodInterfaceName: "podb1f51a511f1", InfoSource: "domain, multus-status", QueueCount: 1, LinkState: "down"},
		{Name: "blue", PodInterfaceName: "pod16477688c0e", InfoSource: "domain", QueueCount: 256, LinkState: "up"},
	}
	if d := cmp.Diff(want, interfaces(s)); d != "" {
		t.Error(d)
	}
}

func TestAGuestOfIPv6IsToldOfItsRouter(t *testing.T) {
	masquerade := v1.InterfaceBindingMethod{Masquerade: &v1.InterfaceMasquerade{}}
	behind := vmi(v1.Running, func(m *v1.VirtualMachineInstance) {
		m.Spec.Domain.Devices.Interfaces[0].InterfaceBindingMethod = masquerade
	})
	going := vmi(v1.Running, deletedFor(0), func(m *v1.VirtualMachineInstance) {
		m.Spec.Domain.Devices.Interfaces[0].InterfaceBindingMethod = masquerade
	})
	only4 := pod()
	only4.Status.PodIPs = only4.Status.PodIPs[:1]
	for name, tc := range map[string]struct {
		seen Seen
		want bool
	}{
		"it is behind the Pod":     {Seen{VMI: behind, Pod: pod()}, true},
		"it has been told":         {Seen{VMI: behind, Pod: pod(), Advertised: true}, false},
		"it has the Pod's address": {Seen{VMI: vmi(v1.Running), Pod: pod()}, false},
		"the Pod has no IPv6":      {Seen{VMI: behind, Pod: only4}, false},
		"it is asked to shut down": {Seen{VMI: going, Pod: pod()}, false},
		"the launcher isn't heard": {Seen{VMI: behind, Pod: pod(), Silent: now}, false},
	} {
		tc.seen.Node, tc.seen.Guest = here, guest(guestv1.State_PHASE_RUNNING)
		if got := plans[Advertise](tc.seen); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// S12: an annotation is as long as whoever writes it likes, and says what they like.
func FuzzANetworkStatusIsBounded(f *testing.F) {
	f.Add(`[{"interface":"eth0","ips":["10.0.0.1"]}]`)
	f.Add(`[{"interface":"podb1f51a511f1","ips":["` + strings.Repeat(`fd00::1","`, 100) + `"]}]`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		s := Seen{Node: here, Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING), VMI: vmi(v1.Running, func(m *v1.VirtualMachineInstance) {
			m.Spec.Domain.Devices.Interfaces[0].Name = "red"
			m.Spec.Networks = []v1.Network{{Name: "red", NetworkSource: v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: "x"}}}}
		})}
		s.Pod.Annotations = map[string]string{NetworkStatus: text}
		found := interfaces(s)
		if len(found) != 1 || len(found[0].IPs) > maxAddresses {
			t.Errorf("unbounded: %+v", found)
		}
		for _, ip := range found[0].IPs {
			if len(ip) > 45 || strings.ContainsAny(ip, "\x00%<") {
				t.Errorf("address %q", ip)
			}
		}
	})
}

// plans tells whether an action of a kind is among those that are planned.
func plans[A Action](seen Seen) bool {
	return slices.ContainsFunc(For(now, seen).Actions, func(a Action) bool {
		_, is := a.(A)
		return is
	})
}
