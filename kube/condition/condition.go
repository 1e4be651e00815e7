// Package condition sets conditions the way writers.md asks: a controller says every condition it owns every time, and
// lastTransitionTime moves only when the status flips. It is pure: the plans use it.
package condition

import (
	"errors"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

// Want is one condition as its owner sees it now, whatever the kind that carries it.
type Want struct {
	Type            string
	Status          k8sv1.ConditionStatus
	Reason, Message string
}

// True returns a condition that holds.
func True(kind, reason, message string) Want { return Want{kind, k8sv1.ConditionTrue, reason, message} }

// False returns a condition that doesn't.
func False(kind, reason, message string) Want {
	return Want{kind, k8sv1.ConditionFalse, reason, message}
}

// VM returns the conditions of a VM that its controller owns, in the order of want; live are those it shows now.
func VM(now time.Time, live []v1.VirtualMachineCondition, want ...Want) []v1.VirtualMachineCondition {
	return all(now, live, want, func(c v1.VirtualMachineCondition) shown {
		return shown{string(c.Type), c.Status, c.LastTransitionTime}
	}, func(w Want, since metav1.Time) v1.VirtualMachineCondition {
		return v1.VirtualMachineCondition{Type: v1.VirtualMachineConditionType(w.Type), Status: w.Status, Reason: w.Reason, Message: w.Message, LastTransitionTime: since}
	})
}

// VMI is VM for a VirtualMachineInstance.
func VMI(now time.Time, live []v1.VirtualMachineInstanceCondition, want ...Want) []v1.VirtualMachineInstanceCondition {
	return all(now, live, want, func(c v1.VirtualMachineInstanceCondition) shown {
		return shown{string(c.Type), c.Status, c.LastTransitionTime}
	}, func(w Want, since metav1.Time) v1.VirtualMachineInstanceCondition {
		return v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstanceConditionType(w.Type), Status: w.Status, Reason: w.Reason, Message: w.Message, LastTransitionTime: since}
	})
}

// KubeVirt is VM for the KubeVirt CR.
func KubeVirt(now time.Time, live []v1.KubeVirtCondition, want ...Want) []v1.KubeVirtCondition {
	return all(now, live, want, func(c v1.KubeVirtCondition) shown {
		return shown{string(c.Type), c.Status, c.LastTransitionTime}
	}, func(w Want, since metav1.Time) v1.KubeVirtCondition {
		return v1.KubeVirtCondition{Type: v1.KubeVirtConditionType(w.Type), Status: w.Status, Reason: w.Reason, Message: w.Message, LastTransitionTime: since}
	})
}

// shown is what counts of a live condition: it keeps its time while its status stays.
type shown struct {
	kind   string
	status k8sv1.ConditionStatus
	since  metav1.Time
}

func all[C any](now time.Time, live []C, want []Want, read func(C) shown, write func(Want, metav1.Time) C) []C {
	out := make([]C, 0, len(want))
	for _, w := range want {
		since := stamp(now)
		for _, c := range live {
			if l := read(c); l.kind == w.Type && l.status == w.Status && !l.since.IsZero() {
				since = l.since
			}
		}
		out = append(out, write(w, since))
	}
	return out
}

// stamp cuts to the second: what the API server will show again.
func stamp(now time.Time) metav1.Time { return metav1.NewTime(now.Truncate(time.Second)) }

// Failure is an error with the reason (CamelCase) that its condition and event carry.
type Failure struct {
	Reason string
	Err    error
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Failed returns st with the condition Failure=True for err, or without one for nil. The reason is that of the first
// Failure in err's chain, else FailedUpdateError. The result shares nothing with st that it changes.
func Failed(st v1.VirtualMachineStatus, now time.Time, live []v1.VirtualMachineCondition, err error) v1.VirtualMachineStatus {
	if err == nil {
		return st
	}
	reason := "FailedUpdateError"
	var f *Failure
	if errors.As(err, &f) {
		reason = f.Reason
	}
	failure := VM(now, live, True(string(v1.VirtualMachineFailure), reason, err.Error()))
	st.Conditions = append(st.Conditions[:len(st.Conditions):len(st.Conditions)], failure...)
	return st
}
