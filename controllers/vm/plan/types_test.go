package plan_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/instancetype"
)

func typed() *v1.VirtualMachine {
	out := vm(v1.RunStrategyAlways)
	out.Spec.Instancetype = &v1.InstancetypeMatcher{Name: "small"}
	return out
}

func chosen(vcpus uint32) instancetype.Found {
	return instancetype.Found{
		Choice: instancetype.Choice{Instancetype: &v1beta1.VirtualMachineInstancetypeSpec{
			CPU: v1beta1.CPUInstancetype{Guest: vcpus}, Memory: v1beta1.MemoryInstancetype{Guest: resource.MustParse("128Mi")},
		}},
		Used:         []instancetype.Reference{{Kind: instancetype.ClusterInstancetype, Name: "small"}},
		Instancetype: &v1.InstancetypeStatusRef{Name: "small", Kind: instancetype.ClusterInstancetype},
	}
}

func TestAMissingInstancetypeWaitsThenStalls(t *testing.T) {
	s := plan.Seen{VM: typed(), Config: config.From(nil), Types: instancetype.Found{Missing: &instancetype.Missing{Message: "there is no small"}}}
	p := plan.For(epoch, s)
	c := find(p.Status, "Failure")
	if c == nil || c.Reason != "FailedFindInstancetype" || len(p.Actions) != 0 || find(p.Status, plan.Stalled) != nil {
		t.Fatalf("got %v and %+v", p.Actions, p.Status.Conditions)
	}
	if want := epoch.Add(2 * time.Minute); !p.Recheck.Equal(want) {
		t.Fatalf("looks again at %v, want %v", p.Recheck, want)
	}
	s.VM.Status = p.Status
	if c := find(plan.For(p.Recheck, s).Status, plan.Stalled); c == nil || c.Reason != "FailedFindInstancetype" {
		t.Errorf("after the deadline: got %+v", c)
	}
}

func TestARevisionIsStoredBeforeTheStart(t *testing.T) {
	s := plan.Seen{VM: typed(), Config: config.From(nil), Types: chosen(3)}
	s.Types.Store = []*appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}}
	p := plan.For(epoch, s)
	if len(p.Actions) != 3 || p.Actions[0].String() != "storing revision kept" {
		t.Fatalf("got %v", p.Actions)
	}
	start, ok := p.Actions[2].(plan.StartVMI)
	if !ok || start.VMI.Spec.Domain.CPU.Sockets != 3 || start.VMI.Annotations[v1.ClusterInstancetypeAnnotation] != "small" {
		t.Errorf("got %+v", p.Actions[2])
	}
	if p.Status.InstancetypeRef == nil || find(p.Status, "Failure") != nil {
		t.Errorf("got status %+v", p.Status)
	}
}

func TestAConflictNamesTheField(t *testing.T) {
	s := plan.Seen{VM: typed(), Config: config.From(nil), Types: chosen(1)}
	s.VM.Spec.Template.Spec.Domain.CPU = &v1.CPU{Cores: 2}
	p := plan.For(epoch, s)
	c := find(p.Status, "Failure")
	if c == nil || c.Reason != "FailedCreate" || !strings.Contains(c.Message, "spec.template.spec.domain.cpu.cores") || len(p.Actions) != 0 {
		t.Errorf("got %v and %+v", p.Actions, c)
	}
}

func TestAnotherSizeNeedsARestart(t *testing.T) {
	s := plan.Seen{VM: typed(), Config: config.From(nil), Types: chosen(1)}
	for _, a := range plan.For(epoch, s).Actions {
		if start, ok := a.(plan.StartVMI); ok {
			s.VMI = start.VMI
		}
	}
	s.VMI.Status.Phase = v1.Running
	s.VM.Generation++
	if c := find(plan.For(epoch, s).Status, "RestartRequired"); c != nil {
		t.Errorf("the same size: got %+v", c)
	}
	s.Types = chosen(2)
	if c := find(plan.For(epoch, s).Status, "RestartRequired"); c == nil {
		t.Error("two vCPUs for one: no RestartRequired")
	}
}
