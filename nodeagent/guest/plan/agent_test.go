package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// told is a running VMI, one interface behind masquerade, whose agent says something.
func told(agent *guestv1.Agent) Seen {
	s := Seen{Node: here, Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING), VMI: vmi(v1.Running, func(m *v1.VirtualMachineInstance) {
		m.Spec.Domain.Devices.Interfaces[0].InterfaceBindingMethod = v1.InterfaceBindingMethod{Masquerade: &v1.InterfaceMasquerade{}}
		m.Spec.Domain.Devices.Interfaces[0].MacAddress = "02-00-5E-00-53-01"
	})}
	s.Guest.Agent = agent
	return s
}

func TestAddressesOfPodAndAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		agents []string
		want   []string // the Pod has 10.88.0.7 and fd00::7
	}{
		"both know both":                {[]string{"10.0.2.2", "fd10:0:2::2"}, []string{"10.88.0.7", "fd00::7"}},
		"the guest has no IPv6":         {[]string{"10.0.2.2"}, []string{"10.88.0.7"}},
		"a link-local one is none":      {[]string{"10.0.2.2", "fe80::1"}, []string{"10.88.0.7"}},
		"nothing yet":                   {nil, nil},
		"what is no address is dropped": {[]string{"10.0.2.2", "<b>", "fd10:0:2::2%eth0"}, []string{"10.88.0.7"}},
	} {
		s := told(&guestv1.Agent{Interfaces: []*guestv1.AgentInterface{
			{Name: "lo", Mac: "00:00:00:00:00:00", Addresses: []string{"127.0.0.1"}},
			{Name: "enp1s0", Mac: "02:00:5e:00:53:01", Addresses: tc.agents},
		}})
		got := withAgent(s, interfaces(s))
		if len(got) != 1 {
			t.Fatalf("%s: %d interfaces", name, len(got))
		}
		if d := cmp.Diff(tc.want, got[0].IPs); d != "" || got[0].InterfaceName != "enp1s0" || got[0].InfoSource != "domain, guest-agent" {
			t.Errorf("%s: %s %q %q", name, d, got[0].InterfaceName, got[0].InfoSource)
		}
	}
}

func TestAgentInStatus(t *testing.T) {
	agent := &guestv1.Agent{OsId: "debian", OsPrettyName: "Debian GNU/Linux 13\x00\n", KernelRelease: strings.Repeat("6", 4096)}
	st := status(time.Unix(0, 0), told(agent), v1.Running, "")
	if i := st.GuestOSInfo; i.ID != "debian" || i.PrettyName != "Debian GNU/Linux 13" || len(i.KernelRelease) != maxAgentText {
		t.Errorf("system %+v", i)
	}
	if c := conditionOf(st, v1.VirtualMachineInstanceAgentConnected); c == nil || c.Status != "True" {
		t.Errorf("condition %+v, want AgentConnected", c)
	}
	st = status(time.Unix(0, 0), told(nil), v1.Running, "")
	if c := conditionOf(st, v1.VirtualMachineInstanceAgentConnected); c != nil {
		t.Errorf("condition %+v without an agent", c)
	}
}

func conditionOf(st *v1.VirtualMachineInstanceStatus, kind v1.VirtualMachineInstanceConditionType) *metav1.Condition {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return &metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status)}
		}
	}
	return nil
}

// TestS12HostileAgent is row S12 of the threats at the node agent: a launcher that was taken over says what it likes.
func TestS12HostileAgent(t *testing.T) {
	long := strings.Repeat("x\xff", 4096)
	agent := &guestv1.Agent{OsName: long, OsId: long}
	for i := range 4096 {
		agent.Interfaces = append(agent.Interfaces, &guestv1.AgentInterface{
			Name: long, Mac: fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&0xff), Addresses: []string{long, "10.0.0.1", "fe80::1%x"},
		})
	}
	st := status(time.Unix(0, 0), told(agent), v1.Running, "")
	if n := len(st.Interfaces); n != 1+maxGuestOnly {
		t.Errorf("%d interfaces, want our own and %d", n, maxGuestOnly)
	}
	raw, err := json.Marshal(st)
	if err != nil || len(raw) > 16<<10 {
		t.Errorf("the status takes %d bytes, %v", len(raw), err)
	}
}
