//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// The kubelet asks a guest by its agent how it is: a program in the guest says whether it is ready, and an agent that
// answers no more ends it.
func TestProbesByTheGuestAgent(t *testing.T) {
	p := newPlace(t, "probes")
	p.create(p.vm("web", func(vm *v1.VirtualMachine) {
		once := v1.RunStrategyRerunOnFailure
		vm.Spec.RunStrategy = &once
		s := &vm.Spec.Template.Spec
		s.ReadinessProbe = &v1.Probe{PeriodSeconds: 3, TimeoutSeconds: 5, Handler: v1.Handler{Exec: &k8sv1.ExecAction{Command: []string{"/bin/sh", "-c", "cat /run/ready"}}}}
		s.LivenessProbe = &v1.Probe{PeriodSeconds: 5, TimeoutSeconds: 5, InitialDelaySeconds: 60, FailureThreshold: 4, Handler: v1.Handler{GuestAgentPing: &v1.GuestAgentPing{}}}
	}))
	p.phase("web", v1.Running, 2*time.Minute)
	p.agent("web", true, 2*time.Minute)
	p.kubectl("wait", "vmi/web", "-n", p.ns, "--for=condition=Ready=false", "--timeout=60s")
	p.must(lab.Until(t.Context(), time.Minute, "the probe's own words", func(ctx context.Context) (bool, string, error) {
		out, err := theLab.Kubectl(ctx, "get", "events", "-n", p.ns, "-o", "jsonpath={.items[?(@.reason=='Unhealthy')].message}")
		return strings.Contains(out, "No such file or directory"), out, err
	}))
	c := p.shell("web")
	p.asked(c, "echo yes > /run/ready; echo writ''ten", "written")
	p.ready("web", time.Minute)
	first := p.phase("web", v1.Running, time.Second).UID
	p.asked(c, "kill $(cat /run/agent.pid); echo kil''led", "killed")
	p.another("web", first, v1.Running, 4*time.Minute)
}

// kubectl runs it and fails where it does.
func (p place) kubectl(args ...string) {
	p.t.Helper()
	if out, err := theLab.Kubectl(p.t.Context(), args...); err != nil {
		p.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
