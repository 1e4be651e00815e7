package plan_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/vmi/plan"
)

// A machine's state is claimed before its Pod is made; why it can't be is what the VMI says.
func TestStateIsClaimedBeforeThePod(t *testing.T) {
	s := plan.Seen{PhaseOurs: true, VMI: &v1.VirtualMachineInstance{}, Rendered: &k8sv1.Pod{}, State: &k8sv1.PersistentVolumeClaim{}}
	s.VMI.Name, s.VMI.Finalizers = "web", []string{v1.VirtualMachineInstanceFinalizer}
	s.Rendered.Name, s.State.Name = "virt-launcher-web-x", "persistent-state-for-web-x"
	p := plan.For(epoch, s)
	var did []string
	for _, a := range p.Actions {
		did = append(did, a.String())
	}
	if diff := cmp.Diff([]string{"creating PersistentVolumeClaim persistent-state-for-web-x", "creating Pod virt-launcher-web-x"}, did); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	for want, err := range map[string]error{
		plan.ReasonFailedState:  fmt.Errorf("creating: %w", plan.StateError{Err: errors.New("no quota")}),
		plan.ReasonFailedCreate: errors.New("no quota"),
	} {
		st := plan.Failed(epoch, s, p, err)
		if last := st.Conditions[len(st.Conditions)-1]; last.Reason != want || last.Message != err.Error() {
			t.Errorf("conditions %+v, want reason %s", st.Conditions, want)
		}
	}
}
