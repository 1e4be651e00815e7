//go:build e2e

package e2e

import (
	"syscall"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// A guest is never stopped by what happens to our components: the same QEMU, by pid and start time, lives through the
// death of each of them, and afterwards each does its work again.
func TestGuestSurvivesItsControlPlane(t *testing.T) {
	p := placeAlone(t, "survive")
	p.create(p.vm("web"))
	p.phase("web", v1.Running, 2*time.Minute)
	p.login("web", time.Minute)
	before := p.qemu("web")
	for _, component := range []string{"virt-handler", "virt-controller", "virt-api", "virt-operator"} {
		t.Run("kill -9 "+component, func(t *testing.T) {
			victims := lab.Processes("/usr/bin/" + component)
			if len(victims) == 0 {
				t.Fatalf("no process of %s", component)
			}
			for _, v := range victims {
				p.must(syscall.Kill(v.PID, syscall.SIGKILL))
			}
			p.back(component)
			if after := p.qemu("web"); after != before {
				t.Errorf("QEMU was %+v, is %+v", before, after)
			}
		})
	}
	t.Run("the Pod of virt-handler is replaced", func(t *testing.T) {
		_, err := theLab.Kubectl(t.Context(), "delete", "pod", "-n", "kubevirt", "-l", "kubevirt.io=virt-handler", "--wait")
		p.must(err)
		p.back("virt-handler")
		if after := p.qemu("web"); after != before {
			t.Errorf("QEMU was %+v, is %+v", before, after)
		}
	})
	p.must(theLab.Available(t.Context(), 2*time.Minute))
	c := p.login("web", time.Minute)
	p.must(c.Send("root\n"))
	p.must(c.Expect(t.Context(), "# ", 20*time.Second))
	p.create(p.vm("next"))
	p.phase("next", v1.Running, 2*time.Minute)
}

// back waits until the component's workload is rolled out again.
func (p place) back(component string) {
	p.t.Helper()
	kind := "deployment/"
	if component == "virt-handler" {
		kind = "daemonset/"
	}
	_, err := theLab.Kubectl(p.t.Context(), "rollout", "status", "-n", "kubevirt", kind+component, "--timeout=120s")
	p.must(err)
}
