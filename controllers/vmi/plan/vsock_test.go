package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/controllers/vmi/plan"
)

// withSocket is a VMI with a socket to its node whose launcher has just begun to run.
func withSocket(uid types.UID) plan.Seen {
	yes := true
	s := plan.Seen{VMI: &v1.VirtualMachineInstance{}, Pod: &k8sv1.Pod{}, PhaseOurs: true}
	s.VMI.Name, s.VMI.UID, s.VMI.Status.Phase = "web", uid, v1.Scheduling
	s.VMI.Spec.Domain.Devices.AutoattachVSOCK = &yes
	s.Pod.Name, s.Pod.UID, s.Pod.Spec.NodeName = "virt-launcher-web-x", "pod", "node-1"
	s.Pod.Status.ContainerStatuses = []k8sv1.ContainerStatus{{Name: "compute", State: containers[1]}}
	return s
}

func TestEachGuestOfANodeHasAContextIDOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := withSocket(types.UID(rapid.String().Draw(t, "UID")))
		s.TakenCIDs = map[uint32]bool{}
		first := plan.For(epoch, s).Status.VSOCKCID
		for range rapid.IntRange(0, 5).Draw(t, "others") {
			s.TakenCIDs[*plan.For(epoch, s).Status.VSOCKCID] = true
		}
		got := plan.For(epoch, s).Status.VSOCKCID
		if got == nil || *got < 3 || *got == 1<<32-1 || s.TakenCIDs[*got] {
			t.Fatalf("got %v beside %v", got, s.TakenCIDs)
		}
		if len(s.TakenCIDs) == 0 && *got != *first {
			t.Fatalf("got %d, then %d for one UID", *first, *got)
		}
	})
}

func TestAContextIDStays(t *testing.T) {
	s := withSocket("uid")
	s.VMI.Status = plan.For(epoch, s).Status
	if plan.NeedsCID(s.VMI) {
		t.Error("it asks for another")
	}
	s.TakenCIDs = map[uint32]bool{*s.VMI.Status.VSOCKCID: true}
	for name, pod := range map[string]*k8sv1.Pod{"with its Pod": s.Pod, "without": nil} {
		s.Pod = pod
		if diff := cmp.Diff(s.VMI.Status.VSOCKCID, plan.For(epoch, s).Status.VSOCKCID); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	none := withSocket("uid")
	none.VMI.Spec.Domain.Devices.AutoattachVSOCK = nil
	if id := plan.For(epoch, none).Status.VSOCKCID; id != nil {
		t.Errorf("a guest without a socket has %d", *id)
	}
}
