//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/ci/lab"
)

// A guest that is started paused has run nothing, one that is paused runs nothing, and both go on where they stood. The
// spec says the same all the while but for the run strategy, which a start of a halted VM sets.
func TestPauseAndUnpause(t *testing.T) {
	p := newPlace(t, "pause")
	p.create(p.vm("web", halted))
	p.status("web", v1.VirtualMachineStatusStopped, 30*time.Second)
	virtctl := func(args ...string) error {
		_, err := theLab.Run(t.Context(), "virtctl", append(args, "-n", p.ns)...)
		return err
	}
	p.must(virtctl("start", "web", "--paused"))
	vmi := p.phase("web", v1.Running, 2*time.Minute)
	p.status("web", v1.VirtualMachineStatusPaused, 30*time.Second)
	p.paused("web", k8sv1.ConditionTrue)
	c, err := theLab.Console(t.Context(), p.ns, "web")
	p.must(err)
	defer c.Close()
	if err := virtctl("pause", "vm", "web"); err == nil || !strings.Contains(err.Error(), "VMI is already paused") {
		t.Errorf("pausing a paused guest: %v", err)
	}
	if out := c.Output(); strings.Contains(out, "login") || strings.Contains(out, "Linux") {
		t.Errorf("a guest that was to wait has run: %q", out)
	}
	if vm := p.stored(t.Context(), "web"); *vm.Spec.RunStrategy != v1.RunStrategyAlways || len(vm.Status.StateChangeRequests) != 0 {
		t.Errorf("after the start: strategy %s, requests %+v", *vm.Spec.RunStrategy, vm.Status.StateChangeRequests)
	}
	p.must(virtctl("unpause", "vm", "web"))
	p.status("web", v1.VirtualMachineStatusRunning, 30*time.Second)
	p.must(c.Expect(t.Context(), "web login:", busy*time.Minute))
	if err := virtctl("unpause", "vmi", "web"); err == nil || !strings.Contains(err.Error(), "VMI is not paused") {
		t.Errorf("unpausing a running guest: %v", err)
	}
	p.must(c.Send("root\n"))
	p.must(c.Expect(t.Context(), "# ", busy*20*time.Second))

	before := p.qemu("web")
	p.must(virtctl("pause", "vmi", "web"))
	p.status("web", v1.VirtualMachineStatusPaused, 30*time.Second)
	p.paused("web", k8sv1.ConditionTrue)
	p.must(c.Send("echo went on $((40+2))\n"))
	p.paused("web", k8sv1.ConditionTrue)
	if strings.Contains(c.Output(), "went on 42") {
		t.Error("a paused guest has answered")
	}
	p.must(virtctl("unpause", "vm", "web"))
	p.must(c.Expect(t.Context(), "went on 42", busy*20*time.Second))
	p.status("web", v1.VirtualMachineStatusRunning, 30*time.Second)
	p.paused("web", k8sv1.ConditionFalse)
	if after := p.qemu("web"); after != before || p.phase("web", v1.Running, time.Minute).UID != vmi.UID {
		t.Errorf("QEMU was %+v, is %+v", before, after)
	}
}

// paused waits until the launcher Pod is, or isn't, held back from traffic: the last thing that follows a pause.
func (p place) paused(name string, want k8sv1.ConditionStatus) {
	p.t.Helper()
	ready := k8sv1.ConditionTrue
	if want == k8sv1.ConditionTrue {
		ready = k8sv1.ConditionFalse
	}
	p.must(lab.Until(p.t.Context(), time.Minute, fmt.Sprintf("the Pod of %s to have ready %s", name, ready), func(ctx context.Context) (bool, string, error) {
		var pods k8sv1.PodList
		err := theLab.Client.List(ctx, &pods, client.InNamespace(p.ns), client.MatchingLabels{v1.VirtualMachineInstanceIDLabel: name})
		if err != nil || len(pods.Items) != 1 {
			return false, fmt.Sprintf("%d Pods", len(pods.Items)), err
		}
		for _, c := range pods.Items[0].Status.Conditions {
			if c.Type == k8sv1.PodReady {
				return c.Status == ready, string(c.Status), nil
			}
		}
		return false, "no condition", nil
	}))
}
