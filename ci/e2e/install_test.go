//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
)

func TestExplainAndPrinterColumns(t *testing.T) {
	ctx := t.Context()
	out, err := theLab.Kubectl(ctx, "explain", "vm.spec.template.spec.domain.devices.disks")
	if err != nil || !containsAll(out, []string{"bootOrder", "FIELDS"}) {
		t.Errorf("kubectl explain: %v\n%s", err, out)
	}
	p := newPlace(t, "columns")
	p.create(p.vm("web", halted))
	p.status("web", v1.VirtualMachineStatusStopped, 30*time.Second)
	out, err = theLab.Kubectl(ctx, "get", "vms", "-n", p.ns)
	if err != nil || !containsAll(out, []string{"AGE", "STATUS", "READY", "Stopped"}) {
		t.Errorf("kubectl get vms: %v\n%s", err, out)
	}
}

func TestInstallIsRefusedToGoWhileVMsExist(t *testing.T) {
	p := placeAlone(t, "uninstall")
	p.create(p.vm("web", halted))
	out, err := theLab.Kubectl(t.Context(), "delete", "kubevirt", "kubevirt", "-n", "kubevirt", "--wait=false")
	if err == nil {
		t.Fatalf("deleting the KubeVirt CR while a VM exists was admitted: %s", out)
	}
	if !containsAll(err.Error(), []string{"VirtualMachine", "1"}) && !strings.Contains(err.Error(), p.ns) {
		t.Errorf("the refusal should name what is in the way: %v", err)
	}
	p.must(theLab.Available(t.Context(), 30*time.Second))
}

// mostWrites: VM finalizer 1 and status 2; VMI made 1, node label 1, status 2 by virt-controller and 1 by virt-handler;
// Pod made 1 and its readiness gate 1.
const mostWrites = 10

// What it takes to start one VM: writes to the API server by our components, by user agent and object.
func TestFewWritesPerVM(t *testing.T) {
	p := placeAlone(t, "writes")
	since := time.Now()
	p.create(p.vm("web"))
	p.status("web", v1.VirtualMachineStatusRunning, 2*time.Minute)
	writes, err := theLab.Writes(since, p.ns)
	p.must(err)
	ours := 0
	for _, w := range writes {
		t.Logf("%3d %-18s %-8s %s", w.Count, w.Agent, w.Verb, w.Object)
		if strings.HasPrefix(w.Agent, "virt-") && w.Resource != "events" {
			ours += w.Count
		}
	}
	if ours == 0 || ours > mostWrites {
		t.Errorf("our components wrote %d times, want 1 to %d", ours, mostWrites)
	}
}
