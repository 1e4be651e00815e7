// Package defaults makes a VMI from a VM and fills what a spec leaves open. Both are pure functions of the object and
// the configuration, so the same commit gives the same machine; nothing is ever written back to the VM.
package defaults

import (
	"math"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/names"
)

// VMI returns the VMI that a VM wants now: its template, defaulted, owned by the VM and held by the finalizers that
// virt-controller takes away. Its annotations say which defaults it was given, for Recorded. Labels and annotations by
// which Git tools track the VM are not copied.
func VMI(vm *v1.VirtualMachine, cfg config.Config) *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{
		Name:            vm.Name,
		Namespace:       vm.Namespace,
		Labels:          map[string]string{},
		Annotations:     map[string]string{},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vm, v1.VirtualMachineGroupVersionKind)},
		Finalizers:      []string{v1.VirtualMachineInstanceFinalizer},
	}}
	if t := vm.Spec.Template; t != nil {
		vmi.Labels = names.Untracked(t.ObjectMeta.Labels)
		vmi.Annotations = names.Untracked(t.ObjectMeta.Annotations)
		vmi.Spec = *t.Spec.DeepCopy()
	}
	vmi.Annotations[v1.VirtualMachineGenerationAnnotation] = strconv.FormatInt(vm.Generation, 10)
	vmi.Annotations[names.Defaults] = cfg.Defaults().String()
	if startPaused(vm) {
		paused := v1.StartStrategyPaused
		vmi.Spec.StartStrategy = &paused
	}
	fill(vmi, cfg)
	if c := vmi.Spec.Domain.CPU; cfg.AlignCPUs && c.IsolateEmulatorThread {
		vmi.Annotations[v1.EmulatorThreadCompleteToEvenParity] = ""
	}
	return vmi
}

// Recorded returns the configuration by which a VMI that VMI made can be compared with its VM: cfg with the defaults that
// the VMI was made with. One that doesn't say is compared by cfg.
func Recorded(vmi *v1.VirtualMachineInstance, cfg config.Config) config.Config {
	if d, ok := config.ParseDefaults(vmi.Annotations[names.Defaults]); ok {
		return cfg.With(d)
	}
	return cfg
}

// Instance returns a copy of a VMI with what its spec leaves open filled in. It is how a VMI that no VM made gets its
// defaults, each time anew; a VMI that VMI made comes back unchanged.
func Instance(vmi *v1.VirtualMachineInstance, cfg config.Config) *v1.VirtualMachineInstance {
	vmi = vmi.DeepCopy()
	fill(vmi, cfg)
	return vmi
}

// MaxGracePeriod is the longest grace period, in seconds: 68 years, and a day more is still a number of seconds and of
// nanoseconds. One that is longer would overflow, and give its guest no time at all.
const MaxGracePeriod = math.MaxInt32

// GracePeriod returns how long, in seconds, a guest may take to shut down before it is destroyed.
func GracePeriod(vmi *v1.VirtualMachineInstance) int64 {
	if g := vmi.Spec.TerminationGracePeriodSeconds; g != nil {
		return min(max(*g, 0), MaxGracePeriod)
	}
	return v1.DefaultGracePeriodSeconds
}

func startPaused(vm *v1.VirtualMachine) bool {
	r := vm.Status.StateChangeRequests
	return len(r) > 0 && lifecycle.PausedAtFirst(r[0])
}
