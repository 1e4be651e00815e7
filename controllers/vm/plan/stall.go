package plan

import (
	"cmp"
	"fmt"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
)

// Deadlines after which a VM that isn't what its spec says is called stalled.
const (
	// troubleAfter is for a trouble that is known: no node fits, an image can't be had.
	troubleAfter = 2 * time.Minute
	// startAfter is for a guest that just doesn't start, or runs and doesn't get ready.
	startAfter = 10 * time.Minute
	// loopAfter is the number of failed starts in a row.
	loopAfter = 3
)

// stall tells whether a deadline of the VM has passed, or else when the next one does; zero: none is running.
func stall(now time.Time, s Seen, f *v1.VirtualMachineStartFailure) (bool, time.Time) {
	if !lifecycle.Wanted(s.VM, s.VMI) {
		spent := lifecycle.Strategy(s.VM) == v1.RunStrategyOnce && f != nil && f.ConsecutiveFailCount > 0
		return spent && s.VM.DeletionTimestamp == nil, time.Time{}
	}
	if at, waits := awaited(now, s); waits {
		return !now.Before(at), at
	}
	if refused(s) != nil || f != nil && f.ConsecutiveFailCount >= loopAfter {
		return true, time.Time{}
	}
	if s.VMI == nil || lifecycle.Final(s.VMI) || s.VMI.DeletionTimestamp != nil {
		return false, time.Time{}
	}
	at := time.Time{}
	if c := troubled(s.VMI); c != nil {
		if c.Reason == reasonUnsupported {
			return true, time.Time{}
		}
		at = c.LastTransitionTime.Add(troubleAfter)
	}
	if s.VMI.Status.Phase != v1.Running && !s.VMI.CreationTimestamp.IsZero() {
		at = earliest(at, s.VMI.CreationTimestamp.Add(startAfter))
	}
	if c := unready(s.VMI); c != nil {
		at = earliest(at, c.LastTransitionTime.Add(startAfter))
	}
	if at.IsZero() || now.Before(at) {
		return false, at
	}
	return true, time.Time{}
}

// troubled returns the VMI's condition that says what is wrong, if one does.
func troubled(vmi *v1.VirtualMachineInstance) *v1.VirtualMachineInstanceCondition {
	for _, kind := range []v1.VirtualMachineInstanceConditionType{v1.VirtualMachineInstanceSynchronized, v1.VirtualMachineInstanceConditionType(k8sv1.PodScheduled)} {
		if c := vmiCondition(vmi, kind); c != nil && c.Status == k8sv1.ConditionFalse {
			return c
		}
	}
	return nil
}

// unready returns the condition Ready of a VMI whose guest runs and isn't ready, though nobody has paused it.
func unready(vmi *v1.VirtualMachineInstance) *v1.VirtualMachineInstanceCondition {
	c := vmiCondition(vmi, v1.VirtualMachineInstanceReady)
	if vmi.Status.Phase != v1.Running || c == nil || c.Status == k8sv1.ConditionTrue || pausedByUser(vmi) {
		return nil
	}
	return c
}

// trouble says what a stalled VM waits for.
func trouble(s Seen, f *v1.VirtualMachineStartFailure) (reason, message string) {
	if c := refused(s); c != nil {
		return c.Reason, c.Message
	}
	if s.VMI != nil {
		if c := troubled(s.VMI); c != nil {
			return reasonOf(c), c.Message
		}
	}
	if f != nil && f.ConsecutiveFailCount >= loopAfter {
		return string(v1.VirtualMachineStatusCrashLoopBackOff), loopMessage(s, f)
	}
	if c := lastFailure(s, f); c != nil {
		return c.Reason, c.Message
	}
	if s.VMI != nil {
		if c := unready(s.VMI); c != nil {
			return "NotReady", fmt.Sprintf("the guest runs and isn't ready after %s: %s", startAfter, cmp.Or(c.Message, c.Reason))
		}
	}
	return "StartTimeout", fmt.Sprintf("the guest doesn't run %s after its VMI was made", startAfter)
}

func loopMessage(s Seen, f *v1.VirtualMachineStartFailure) string {
	message := fmt.Sprintf("the guest failed to start %d times in a row", f.ConsecutiveFailCount)
	if c := lastFailure(s, f); c != nil {
		message += ": " + c.Message
	}
	return message
}

// reasonOf returns a condition's reason where it is one word, which a reason must be.
func reasonOf(c *v1.VirtualMachineInstanceCondition) string {
	for _, r := range c.Reason {
		if r == ' ' || r == '.' {
			return "SyncFailed"
		}
	}
	return c.Reason
}
