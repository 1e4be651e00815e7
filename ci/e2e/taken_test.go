//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/ci/lab"
)

// launcher returns the one launcher Pod of the place.
func (p place) launcher() *corev1.Pod {
	p.t.Helper()
	pods := &corev1.PodList{}
	p.must(theLab.Client.List(p.t.Context(), pods, client.InNamespace(p.ns)))
	if len(pods.Items) != 1 {
		p.t.Fatalf("%d Pods in %s, want one", len(pods.Items), p.ns)
	}
	return &pods.Items[0]
}

// A guest whose launcher Pod is taken away shuts down in good order, which isn't its own wish: it comes back, though its
// strategy lets a guest that powers itself off rest. Source: kubevirt/kubevirt#9823.
func TestGuestWhosePodIsTakenAwayComesBack(t *testing.T) {
	p := newPlace(t, "taken")
	p.create(p.vm("web", func(vm *v1.VirtualMachine) {
		strategy, none := v1.RunStrategyRerunOnFailure, v1.EvictionStrategyNone
		vm.Spec.RunStrategy, vm.Spec.Template.Spec.EvictionStrategy = &strategy, &none
	}))
	vmi := p.phase("web", v1.Running, 2*time.Minute)
	console := p.shell("web")
	p.must(theLab.Client.SubResource("eviction").Create(t.Context(), p.launcher(), &policyv1.Eviction{}))
	p.must(console.Expect(t.Context(), "GUEST: going down", busy*30*time.Second)) // the power button
	p.another("web", vmi.UID, v1.Running, 2*time.Minute)
	p.qemu("web")
	p.must(lab.Until(t.Context(), 20*time.Second, "an event that tells why", func(ctx context.Context) (bool, string, error) {
		out, err := theLab.Kubectl(ctx, "get", "events", "-n", p.ns)
		return strings.Contains(out, "the launcher Pod was taken away"), out, err
	}))
	p.must(p.shell("web").Send("poweroff\n")) // the guest's own wish
	p.status("web", v1.VirtualMachineStatusStopped, time.Minute)
	p.gone(&v1.VirtualMachineInstance{}, "web", 30*time.Second)
	p.must(lab.Until(t.Context(), 30*time.Second, "a VM without an instance", func(ctx context.Context) (bool, string, error) {
		vm := p.stored(ctx, "web")
		return !vm.Status.Created && vm.Generation == 1, fmt.Sprintf("created %v, generation %d", vm.Status.Created, vm.Generation), nil
	}))
}
