package plan

import (
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
)

func TestPauseAndUnpause(t *testing.T) {
	pausedVMI := vmi(v1.Running)
	pausedVMI.Status.Conditions = []v1.VirtualMachineInstanceCondition{{Type: v1.VirtualMachineInstancePaused, Status: k8sv1.ConditionTrue}}
	probed, pinged := vmi(v1.Running), vmi(v1.Running)
	probed.Spec.LivenessProbe = &v1.Probe{Handler: v1.Handler{TCPSocket: &k8sv1.TCPSocketAction{}}}
	bare := probed.DeepCopy()
	bare.OwnerReferences = nil
	pinged.Spec.LivenessProbe = &v1.Probe{Handler: v1.Handler{GuestAgentPing: &v1.GuestAgentPing{}}}
	name, snapshot := `Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io "web": `, "s"
	frozen := vm(v1.RunStrategyAlways)
	frozen.Status.SnapshotInProgress = &snapshot
	for what, tc := range map[string]struct {
		got  error
		want string
	}{
		"pause a running one":      {Pause(vmi(v1.Running)), ""},
		"pause one that starts":    {Pause(vmi(v1.Scheduled)), "Conflict: " + name + "VM is not running"},
		"pause one that is over":   {Pause(vmi(v1.Succeeded)), "Conflict: " + name + "VM is not running"},
		"pause a paused one":       {Pause(pausedVMI), "Conflict: " + name + "VMI is already paused"},
		"pause one with an agent":  {Pause(pinged), ""},
		"pause a bare probed one":  {Pause(bare), `Forbidden: virtualmachineinstance.kubevirt.io "web" is forbidden: spec.livenessProbe: Forbidden: the probe would fail while the guest is paused, and end it: take it out, or make it a guestAgentPing`},
		"pause a VM's probed one":  {Pause(probed), `Forbidden: virtualmachineinstance.kubevirt.io "web" is forbidden: spec.template.spec.livenessProbe: Forbidden: the probe would fail while the guest is paused, and end it: take it out, or make it a guestAgentPing`},
		"unpause a paused one":     {Unpause(vm(v1.RunStrategyAlways), pausedVMI), ""},
		"unpause a bare one":       {Unpause(nil, pausedVMI), ""},
		"unpause a running one":    {Unpause(nil, vmi(v1.Running)), "Conflict: " + name + "VMI is not paused"},
		"unpause one that is over": {Unpause(nil, vmi(v1.Failed)), "Conflict: " + name + "VMI is not running"},
		"unpause in a snapshot":    {Unpause(frozen, pausedVMI), "Conflict: " + name + "VM snapshot is in progress"},
	} {
		if got := outcome(nil, tc.got); got != tc.want {
			t.Errorf("%s: got %q, want %q", what, got, tc.want)
		}
	}
}
