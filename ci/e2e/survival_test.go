//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
			p.killed(component)
			if after := p.qemu("web"); after != before {
				t.Errorf("QEMU was %+v, is %+v", before, after)
			}
		})
	}
	t.Run("the Pod of virt-handler is replaced", func(t *testing.T) {
		old := p.containers("virt-handler")
		_, err := theLab.Kubectl(t.Context(), "delete", "pod", "-n", "kubevirt", "-l", "kubevirt.io=virt-handler", "--wait")
		p.must(err)
		p.back("virt-handler", old)
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

// killed kills a component's processes, does what is to be done while it is away, and waits until it is back.
func (p place) killed(component string, meanwhile ...func()) {
	p.t.Helper()
	old, victims := p.containers(component), lab.Processes("/usr/bin/"+component)
	if len(victims) == 0 {
		p.t.Fatalf("no process of %s", component)
	}
	for _, v := range victims {
		p.must(syscall.Kill(v.PID, syscall.SIGKILL))
	}
	for _, do := range meanwhile {
		do()
	}
	p.back(component, old)
}

// back waits until all of a component's containers are ready and none is one of the old. The status of its workload
// would not do: for a second or two after a kill it is that of before.
func (p place) back(component string, old map[string]bool) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), 2*time.Minute, component+" to be back", func(context.Context) (bool, string, error) {
		now := p.containers(component)
		back := len(now) > 0
		for id, ready := range now {
			_, before := old[id]
			back = back && ready && !before
		}
		return back, fmt.Sprintf("containers %v, before %v", now, old), nil
	}))
}

// containers returns the ids of a component's containers, and whether each is ready. One that isn't made yet has its
// Pod's name.
func (p place) containers(component string) map[string]bool {
	p.t.Helper()
	pods := &corev1.PodList{}
	p.must(theLab.Client.List(p.t.Context(), pods, client.InNamespace("kubevirt"), client.MatchingLabels{"kubevirt.io": component}))
	found := map[string]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if len(pod.Status.ContainerStatuses) == 0 {
			found[pod.Name] = false
		}
		for _, c := range pod.Status.ContainerStatuses {
			found[cmp.Or(c.ContainerID, pod.Name)] = c.Ready && pod.DeletionTimestamp == nil
		}
	}
	return found
}
