package plan

import (
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
)

// unsupported is the word for a VM that waits for another version or configuration of virtstack: no rule of the
// contract has one, and Starting would promise a start (docs/departures.md).
const unsupported v1.VirtualMachinePrintableStatus = "ErrorUnsupported"

// printable returns the one word for people: the first of the contract's rules (§6) that fits.
func printable(now time.Time, s Seen, f *v1.VirtualMachineStartFailure) v1.VirtualMachinePrintableStatus {
	want := lifecycle.For(s.VM, s.VMI)
	live := s.VMI != nil && !lifecycle.Final(s.VMI)
	switch {
	case s.VM.DeletionTimestamp != nil:
		return v1.VirtualMachineStatusTerminating
	case live && (s.VMI.DeletionTimestamp != nil || want.VMI == lifecycle.Absent):
		return v1.VirtualMachineStatusStopping
	case live && migrating(s.VMI):
		return v1.VirtualMachineStatusMigrating
	case live && s.VMI.Status.Phase == v1.Running && vmiTrue(s.VMI, v1.VirtualMachineInstancePaused):
		return v1.VirtualMachineStatusPaused
	case live && s.VMI.Status.Phase == v1.Running:
		return v1.VirtualMachineStatusRunning
	case live:
		return starting(s.VMI)
	case s.VMI == nil && want.VMI == lifecycle.Present && refused(s) == nil && !now.Before(lifecycle.RetryAt(s.VM, f)):
		return v1.VirtualMachineStatusStarting
	case f != nil && f.ConsecutiveFailCount > 0:
		return v1.VirtualMachineStatusCrashLoopBackOff
	}
	return v1.VirtualMachineStatusStopped
}

// starting says what keeps a VMI from running, if anything does.
func starting(vmi *v1.VirtualMachineInstance) v1.VirtualMachinePrintableStatus {
	if c := vmiCondition(vmi, v1.VirtualMachineInstanceConditionType(k8sv1.PodScheduled)); c != nil && c.Status == k8sv1.ConditionFalse && c.Reason == k8sv1.PodReasonUnschedulable {
		return v1.VirtualMachineStatusUnschedulable
	}
	if c := vmiCondition(vmi, v1.VirtualMachineInstanceSynchronized); c != nil && c.Status == k8sv1.ConditionFalse {
		switch reason := v1.VirtualMachinePrintableStatus(c.Reason); reason {
		case v1.VirtualMachineStatusErrImagePull, v1.VirtualMachineStatusImagePullBackOff:
			return reason
		case "FailedPvcNotFound":
			return v1.VirtualMachineStatusPvcNotFound
		case reasonUnsupported:
			return unsupported
		case "FailedDataVolumeImport":
			return v1.VirtualMachineStatusDataVolumeError
		case "DataVolumeNotReady":
			return v1.VirtualMachineStatusProvisioning
		}
	}
	return v1.VirtualMachineStatusStarting
}

func migrating(vmi *v1.VirtualMachineInstance) bool {
	m := vmi.Status.MigrationState
	return m != nil && m.StartTimestamp != nil && m.EndTimestamp == nil
}
