//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// What QEMU's own agent in the guest says of the guest is in the VMI's status for as long as there is an agent.
func TestGuestAgent(t *testing.T) {
	p := newPlace(t, "agent")
	p.create(p.vm("web"))
	p.phase("web", v1.Running, 2*time.Minute)
	p.agent("web", true, 2*time.Minute)
	vmi := p.phase("web", v1.Running, time.Second)
	if os := vmi.Status.GuestOSInfo; os.ID != "testguest" || os.PrettyName != "Test guest of virtstack" || os.KernelRelease == "" {
		t.Errorf("the guest's system is %+v", os)
	}
	i := vmi.Status.Interfaces[0]
	if len(vmi.Status.Interfaces) != 1 || i.InterfaceName != "eth0" || i.InfoSource != "domain, guest-agent" || i.IP == "" {
		t.Errorf("interfaces %+v", vmi.Status.Interfaces)
	}
	c := p.shell("web")
	p.asked(c, "kill $(cat /run/agent.pid); echo kil''led", "killed")
	p.agent("web", false, time.Minute)
	p.phase("web", v1.Running, time.Second)
}

// agent waits until a VMI has the condition AgentConnected, or until it hasn't.
func (p place) agent(name string, connected bool, limit time.Duration) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), limit, fmt.Sprintf("AgentConnected of VMI %s to be %t", name, connected), func(ctx context.Context) (bool, string, error) {
		vmi := p.phase(name, v1.Running, time.Second)
		for _, c := range vmi.Status.Conditions {
			if c.Type == v1.VirtualMachineInstanceAgentConnected {
				return connected, string(c.Status), nil
			}
		}
		return !connected, "no condition", nil
	}))
}
