package instancetype

import (
	"maps"
	"slices"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"
)

var (
	templatePath = field.NewPath("spec", "template")
	specPath     = templatePath.Child("spec")
	domainPath   = specPath.Child("domain")
)

// clash is one field that template and instancetype both set.
type clash struct {
	path  *field.Path
	value any
}

// clashes collects them in the order in which they are looked for.
type clashes []clash

func (c *clashes) when(both bool, path *field.Path, value any) {
	if both {
		*c = append(*c, clash{path, value})
	}
}

// Conflicts returns one error for each field of the template that the instancetype sets too: such a VM has no one
// meaning. All of them are told at once, and each message names all of them. A nil instancetype conflicts with nothing.
func Conflicts(t *v1.VirtualMachineInstanceTemplateSpec, i *v1beta1.VirtualMachineInstancetypeSpec) field.ErrorList {
	if t == nil || i == nil {
		return nil
	}
	var found clashes
	found.resources(t.Spec.Domain.Resources)
	found.cpu(t.Spec.Domain.CPU, i.CPU)
	found.memory(t.Spec.Domain.Memory, i.Memory)
	found.rest(&t.Spec, i)
	found.annotations(t.ObjectMeta.Annotations, i.Annotations)
	return found.errors()
}

func (c clashes) errors() field.ErrorList {
	paths := make([]string, len(c))
	for i := range c {
		paths[i] = c[i].path.String()
	}
	message := "VM field(s) " + strings.Join(paths, ", ") + " conflicts with selected instance type: remove what the instance type sets from the template"
	var errs field.ErrorList
	for _, one := range c {
		errs = append(errs, field.Invalid(one.path, one.value, message))
	}
	return errs
}

func (c *clashes) resources(r v1.ResourceRequirements) {
	path := domainPath.Child("resources")
	for _, list := range []struct {
		field string
		of    k8sv1.ResourceList
	}{{"requests", r.Requests}, {"limits", r.Limits}} {
		for _, name := range []k8sv1.ResourceName{k8sv1.ResourceCPU, k8sv1.ResourceMemory} {
			q, ok := list.of[name]
			c.when(ok, path.Child(list.field, string(name)), q.String())
		}
	}
}

func (c *clashes) cpu(has *v1.CPU, sets v1beta1.CPUInstancetype) {
	if has == nil {
		return
	}
	path := domainPath.Child("cpu")
	c.when(has.Sockets != 0, path.Child("sockets"), has.Sockets)
	c.when(has.Cores != 0, path.Child("cores"), has.Cores)
	c.when(has.Threads != 0, path.Child("threads"), has.Threads)
	c.when(has.Model != "" && sets.Model != nil, path.Child("model"), has.Model)
	c.when(has.DedicatedCPUPlacement && sets.DedicatedCPUPlacement != nil, path.Child("dedicatedCpuPlacement"), true)
	c.when(has.IsolateEmulatorThread && sets.IsolateEmulatorThread != nil, path.Child("isolateEmulatorThread"), true)
	c.when(has.NUMA != nil && sets.NUMA != nil, path.Child("numa"), has.NUMA)
	c.when(has.Realtime != nil && sets.Realtime != nil, path.Child("realtime"), has.Realtime)
}

func (c *clashes) memory(has *v1.Memory, sets v1beta1.MemoryInstancetype) {
	if has == nil {
		return
	}
	path := domainPath.Child("memory")
	switch {
	case has.Guest != nil:
		c.when(true, path.Child("guest"), text(*has.Guest))
	case has.Hugepages != nil && sets.Hugepages != nil:
		c.when(true, path.Child("hugepages"), has.Hugepages.PageSize)
	case has.MaxGuest != nil && sets.MaxGuest != nil:
		c.when(true, path.Child("maxGuest"), text(*has.MaxGuest))
	}
}

// text writes a copy of a quantity: the quantity itself would keep what was written.
func text(q resource.Quantity) string { return q.String() }

func (c *clashes) rest(has *v1.VirtualMachineInstanceSpec, sets *v1beta1.VirtualMachineInstancetypeSpec) {
	d, devices := has.Domain, domainPath.Child("devices")
	c.when(len(d.Devices.GPUs) > 0 && len(sets.GPUs) > 0, devices.Child("gpus"), len(d.Devices.GPUs))
	c.when(len(d.Devices.HostDevices) > 0 && len(sets.HostDevices) > 0, devices.Child("hostDevices"), len(d.Devices.HostDevices))
	if d.IOThreadsPolicy != nil {
		c.when(sets.IOThreadsPolicy != nil, domainPath.Child("ioThreadsPolicy"), string(*d.IOThreadsPolicy))
	}
	if d.IOThreads != nil && d.IOThreads.SupplementalPoolThreadCount != nil {
		c.when(sets.IOThreads != nil && sets.IOThreads.SupplementalPoolThreadCount != nil,
			domainPath.Child("ioThreads", "supplementalPoolThreadCount"), *d.IOThreads.SupplementalPoolThreadCount)
	}
	c.when(d.LaunchSecurity != nil && sets.LaunchSecurity != nil, domainPath.Child("launchSecurity"), "set")
	c.when(has.SchedulerName != "" && sets.SchedulerName != "", specPath.Child("schedulerName"), has.SchedulerName)
	c.when(len(has.NodeSelector) > 0 && len(sets.NodeSelector) > 0, specPath.Child("nodeSelector"), has.NodeSelector)
}

func (c *clashes) annotations(has, sets map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		value, ok := has[key]
		c.when(ok && value != sets[key], templatePath.Child("metadata", "annotations").Key(key), value)
	}
}
