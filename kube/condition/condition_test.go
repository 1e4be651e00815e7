package condition_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/kube/condition"
)

var epoch = time.Unix(1000, 500)

func TestTheTimeMovesOnlyWhenTheStatusFlips(t *testing.T) {
	first := condition.VM(epoch, nil, condition.False("Ready", "A", "a"))
	second := condition.VM(epoch.Add(time.Minute), first, condition.False("Ready", "B", "b"))
	third := condition.VM(epoch.Add(time.Hour), second, condition.True("Ready", "C", "c"))
	if !second[0].LastTransitionTime.Equal(&first[0].LastTransitionTime) || second[0].Reason != "B" {
		t.Errorf("another reason: got %+v", second[0])
	}
	if want := epoch.Add(time.Hour).Truncate(time.Second); !third[0].LastTransitionTime.Time.Equal(want) {
		t.Errorf("another status: got %v, want %v", third[0].LastTransitionTime, want)
	}
}

func TestOnlyWhatIsWantedIsSaid(t *testing.T) {
	live := condition.VMI(epoch, nil, condition.True("Ready", "", ""), condition.True("Paused", "", ""))
	got := condition.VMI(epoch, live, condition.True("Paused", "", ""))
	if len(got) != 1 || got[0].Type != v1.VirtualMachineInstancePaused || got[0].Status != k8sv1.ConditionTrue {
		t.Errorf("got %+v", got)
	}
}

func TestAFailureCarriesItsReason(t *testing.T) {
	st := v1.VirtualMachineStatus{Conditions: condition.VM(epoch, nil, condition.True("Ready", "", ""))}
	if got := condition.Failed(st, epoch, nil, nil); len(got.Conditions) != 1 {
		t.Errorf("without an error: got %+v", got.Conditions)
	}
	err := fmt.Errorf("starting VMI web: %w", &condition.Failure{Reason: "FailedCreate", Err: errors.New("quota")})
	got := condition.Failed(st, epoch, nil, err).Conditions
	if len(got) != 2 || got[1].Type != v1.VirtualMachineFailure || got[1].Reason != "FailedCreate" || got[1].Message != "starting VMI web: quota" {
		t.Errorf("got %+v", got)
	}
	if len(st.Conditions) != 1 {
		t.Errorf("the status that was given has changed: %+v", st.Conditions)
	}
}
