package tally

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
)

// groups are those of a VM's printable status.
var groups = []string{"starting", "running", "migrating", "non_running", "error"}

// groupOf returns the group of a VM's status.
func groupOf(s v1.VirtualMachinePrintableStatus) string {
	switch s {
	case v1.VirtualMachineStatusStarting, v1.VirtualMachineStatusProvisioning, v1.VirtualMachineStatusWaitingForVolumeBinding:
		return "starting"
	case v1.VirtualMachineStatusRunning:
		return "running"
	case v1.VirtualMachineStatusMigrating:
		return "migrating"
	case v1.VirtualMachineStatusStopped, v1.VirtualMachineStatusStopping, v1.VirtualMachineStatusPaused, v1.VirtualMachineStatusTerminating:
		return "non_running"
	}
	return "error"
}

// Annotations by which templates say what a VM is for.
const (
	osKey       = "vm.kubevirt.io/os"
	workloadKey = "vm.kubevirt.io/workload"
	flavorKey   = "vm.kubevirt.io/flavor"
)

func machine(to chan<- prometheus.Metric, vm *v1.VirtualMachine) {
	about, machineType := map[string]string{}, ""
	if t := vm.Spec.Template; t != nil {
		about = t.ObjectMeta.Annotations
		if m := t.Spec.Domain.Machine; m != nil {
			machineType = m.Type
		}
	}
	kind, preference := "", ""
	if i := vm.Spec.Instancetype; i != nil {
		kind = i.Name
	}
	if p := vm.Spec.Preference; p != nil {
		preference = p.Name
	}
	group := groupOf(vm.Status.PrintableStatus)
	vmInfo.send(to, 1, vm.Name, vm.Namespace, about[osKey], about[workloadKey], about[flavorKey], machineType, kind, preference,
		string(vm.Status.PrintableStatus), group)
	vmCreated.send(to, float64(vm.CreationTimestamp.Unix()), vm.Name, vm.Namespace)
	for name, s := range since {
		at := 0.0
		if name == group {
			at = float64(changed(vm).Unix())
		}
		s.send(to, at, vm.Name, vm.Namespace)
	}
	for _, c := range vm.Status.Conditions {
		if c.Type == "Stalled" && c.Status == k8sv1.ConditionTrue {
			vmStalled.send(to, 1, vm.Name, vm.Namespace, c.Reason)
		}
	}
}

// changed is when a VM's status changed last, as far as its conditions tell.
func changed(vm *v1.VirtualMachine) time.Time {
	last := vm.CreationTimestamp.Time
	for _, c := range vm.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

func instance(to chan<- prometheus.Metric, vmi *v1.VirtualMachineInstance) {
	about, guest := vmi.Annotations, vmi.Status.GuestOSInfo
	_, outdated := vmi.Labels[v1.OutdatedLauncherImageLabel]
	migratable := slices.ContainsFunc(vmi.Status.Conditions, func(c v1.VirtualMachineInstanceCondition) bool {
		return c.Type == v1.VirtualMachineInstanceIsMigratable && c.Status == k8sv1.ConditionTrue
	})
	vmiInfo.send(to, 1, vmi.Status.NodeName, vmi.Namespace, vmi.Name, string(vmi.Status.Phase), about[osKey], about[workloadKey], about[flavorKey],
		about[v1.InstancetypeAnnotation], about[v1.PreferenceAnnotation], guest.KernelRelease, guest.Machine, vmi.Spec.Architecture, guest.Name, guest.VersionID,
		strconv.FormatBool(migratable), strconv.FormatBool(outdated), pod(vmi))
	migrates := vmi.Spec.EvictionStrategy != nil && *vmi.Spec.EvictionStrategy == v1.EvictionStrategyLiveMigrate
	if migrates && vmi.Status.Phase == v1.Running && !migratable {
		vmiNonEvictable.send(to, 1, vmi.Status.NodeName, vmi.Namespace, vmi.Name)
	}
}

// pod names the launcher Pod on the VMI's node.
func pod(vmi *v1.VirtualMachineInstance) string {
	if m := vmi.Status.MigrationState; m != nil && m.Completed && m.TargetNode == vmi.Status.NodeName && m.TargetPod != "" {
		return m.TargetPod
	}
	return names.LauncherPod(vmi.Name, vmi.UID)
}
