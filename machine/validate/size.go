package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/size"
)

const (
	// minMemory is the least guest memory, in bytes: less is a forgotten unit.
	minMemory = 1000 * 1000
	// maxAmount, 1 Pi, is the most bytes of anything: more than a node has, and sums of it stay numbers of 64 bits.
	maxAmount = 1 << 50
	// maxVCPUs is the most virtual CPUs that QEMU's q35 machine takes.
	maxVCPUs = 4096
)

func memory(domain *field.Path, d *v1.DomainSpec, from supplies) field.ErrorList {
	path := domain.Child("memory")
	_, bounded := d.Resources.Requests[k8sv1.ResourceMemory]
	limit, limited := d.Resources.Limits[k8sv1.ResourceMemory]
	if d.Memory == nil {
		if from.instancetype || bounded || limited {
			return nil
		}
		return field.ErrorList{field.Required(path.Child("guest"), "must be the guest's memory, such as 2Gi")}
	}
	var errs field.ErrorList
	guest := d.Memory.Guest
	switch {
	case guest != nil:
		errs = amount(path.Child("guest"), *guest, minMemory)
		if len(errs) == 0 && limited && limit.Cmp(*guest) < 0 {
			errs = append(errs, field.Invalid(path.Child("guest"), guest.String(),
				fmt.Sprintf("must be at most the Pod's limit, %s in resources.limits.memory", limit.String())))
		}
	case !from.instancetype && !bounded && !limited && d.Memory.Hugepages == nil:
		errs = append(errs, field.Required(path.Child("guest"), "must be the guest's memory, such as 2Gi"))
	}
	_, total := guestMemory(domain, d)
	if most := d.Memory.MaxGuest; most != nil && total != nil && most.Cmp(*total) < 0 {
		errs = append(errs, field.Invalid(path.Child("maxGuest"), most.String(),
			fmt.Sprintf("must be at least the guest's memory, %s", total.String())))
	}
	if most := d.Memory.MaxGuest; most != nil && most.CmpInt64(maxAmount) > 0 {
		errs = append(errs, field.Invalid(path.Child("maxGuest"), most.String(), "must be at most 1Pi"))
	}
	if r := d.Memory.ReservedOverhead; r != nil && r.AddedOverhead != nil {
		errs = append(errs, amount(path.Child("reservedOverhead", "addedOverhead"), *r.AddedOverhead, 0)...)
	}
	return append(errs, hugepages(path.Child("hugepages", "pageSize"), d.Memory.Hugepages, total)...)
}

// guestMemory returns the memory that the guest is given and the field that says so; nil where none does, or an
// instancetype.
func guestMemory(domain *field.Path, d *v1.DomainSpec) (*field.Path, *resource.Quantity) {
	if d.Memory != nil && d.Memory.Guest != nil {
		return domain.Child("memory", "guest"), d.Memory.Guest
	}
	for _, from := range []struct {
		name string
		k8sv1.ResourceList
	}{{"requests", d.Resources.Requests}, {"limits", d.Resources.Limits}} {
		if q, ok := from.ResourceList[k8sv1.ResourceMemory]; ok {
			return domain.Child("resources", from.name, "memory"), &q
		}
	}
	if d.Memory == nil || d.Memory.Hugepages == nil {
		return nil, nil
	}
	q, err := resource.ParseQuantity(d.Memory.Hugepages.PageSize)
	if err != nil {
		return nil, nil
	}
	return domain.Child("memory", "hugepages", "pageSize"), &q // a page is the least that there can be
}

// hugepages wants memory, where it is known, in whole pages.
func hugepages(path *field.Path, pages *v1.Hugepages, total *resource.Quantity) field.ErrorList {
	if pages == nil {
		return nil
	}
	size, err := resource.ParseQuantity(pages.PageSize)
	if err != nil || len(amount(path, size, 1)) > 0 {
		return field.ErrorList{field.Invalid(path, short(pages.PageSize), "must be a page size, such as 2Mi or 1Gi")}
	}
	if total == nil || total.Sign() <= 0 || total.Value()%size.Value() == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, pages.PageSize,
		fmt.Sprintf("must divide the guest's memory, %s", total.String()))}
}

// amount wants a whole number of bytes, at least least and at most maxAmount.
func amount(path *field.Path, q resource.Quantity, least int64) field.ErrorList {
	value, whole := q.String(), q.DeepCopy()
	switch {
	case q.Sign() < 0:
		return field.ErrorList{field.Invalid(path, value, "must not be negative, such as 2Gi")}
	case !whole.RoundUp(0):
		return field.ErrorList{field.Invalid(path, value,
			"must be whole bytes: m stands for thousandths; M is a million bytes, Mi 1048576")}
	case q.CmpInt64(maxAmount) > 0:
		return field.ErrorList{field.Invalid(path, value, "must be at most 1Pi")}
	case q.CmpInt64(least) >= 0:
		return nil
	case q.IsZero():
		return field.ErrorList{field.Invalid(path, value, "must be more than 0, such as 2Gi")}
	}
	return field.ErrorList{field.Invalid(path, value,
		fmt.Sprintf("is %s bytes and must be at least %d: give a unit, such as 2048Mi or 2Gi", value, least))}
}

// resources wants what the Pod asks for to make sense.
func resources(path *field.Path, r v1.ResourceRequirements) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []k8sv1.ResourceName{k8sv1.ResourceCPU, k8sv1.ResourceMemory} {
		request, requested := r.Requests[name]
		limit, limited := r.Limits[name]
		at := path.Child("requests", string(name))
		if requested {
			errs = append(errs, requirement(at, name, request)...)
		}
		if limited {
			errs = append(errs, requirement(path.Child("limits", string(name)), name, limit)...)
		}
		if requested && limited && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(at, request.String(),
				fmt.Sprintf("must be at most the limit, %s in limits.%s", limit.String(), name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		if limit, ok := r.Limits[name]; ok && size.Whole(name) && limit.Cmp(r.Requests[name]) != 0 {
			request := r.Requests[name]
			errs = append(errs, field.Invalid(path.Child("limits").Key(string(name)), limit.String(), "must be the request, "+request.String()))
		}
	}
	errs = append(errs, others(path.Child("requests"), r.Requests)...)
	return append(errs, others(path.Child("limits"), r.Limits)...)
}

// others wants resources beside CPUs and memory to be such as a Pod can ask for.
func others(path *field.Path, list k8sv1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q, at := list[name], path.Key(string(name))
		switch {
		case name == k8sv1.ResourceCPU || name == k8sv1.ResourceMemory:
		case len(validation.IsQualifiedName(string(name))) > 0:
			errs = append(errs, field.Invalid(path, short(string(name)), "must be the name of a resource, such as vendor.example/device"))
		case q.Sign() < 0:
			errs = append(errs, field.Invalid(at, q.String(), "must not be negative"))
		case strings.Contains(string(name), "/") && q.MilliValue()%1000 != 0:
			errs = append(errs, field.Invalid(at, q.String(), "must be whole: nodes give no part of such a resource"))
		}
	}
	return errs
}

func requirement(path *field.Path, name k8sv1.ResourceName, q resource.Quantity) field.ErrorList {
	if name == k8sv1.ResourceMemory {
		return amount(path, q, minMemory)
	}
	switch {
	case q.Sign() < 0:
		return field.ErrorList{field.Invalid(path, q.String(), "must not be negative, such as 500m or 2")}
	case q.CmpInt64(maxVCPUs) > 0: // a machine that names no count has as many virtual CPUs
		return field.ErrorList{field.Invalid(path, q.String(), fmt.Sprintf("must be at most %d", maxVCPUs))}
	}
	return nil
}

var featurePolicies = []string{"force", "require", "optional", "disable", "forbid"}

// cpu checks counts; one that is 0 counts as not given.
func cpu(path *field.Path, c *v1.CPU) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	total := uint64(1)
	for _, n := range []uint32{max(c.Sockets, c.MaxSockets), c.Cores, c.Threads} {
		// Each step is at most 4096 * 2^32, so the product cannot overflow.
		total = min(total*uint64(max(1, n)), maxVCPUs+1)
	}
	if total > maxVCPUs {
		errs = append(errs, field.Invalid(path, fmt.Sprintf("sockets %d, cores %d, threads %d", max(c.Sockets, c.MaxSockets), c.Cores, c.Threads),
			fmt.Sprintf("must make at most %d virtual CPUs when multiplied", maxVCPUs)))
	}
	if c.MaxSockets > 0 && c.Sockets > c.MaxSockets {
		errs = append(errs, field.Invalid(path.Child("sockets"), int64(c.Sockets),
			fmt.Sprintf("must be at most maxSockets, %d", c.MaxSockets)))
	}
	if c.Model != "" && !devices63.MatchString(c.Model) {
		errs = append(errs, field.Invalid(path.Child("model"), short(c.Model), "must be a model that nodes have, such as host-model or Skylake-Client"))
	}
	for i, f := range c.Features {
		if !devices63.MatchString(f.Name) {
			errs = append(errs, field.Invalid(path.Child("features").Index(i).Child("name"), short(f.Name), "must be a feature that nodes have, such as vmx"))
		}
		errs = append(errs, oneOf(path.Child("features").Index(i).Child("policy"), f.Policy, featurePolicies)...)
	}
	if c.IsolateEmulatorThread && !c.DedicatedCPUPlacement {
		errs = append(errs, field.Invalid(path.Child("isolateEmulatorThread"), true, "needs dedicatedCpuPlacement: true"))
	}
	return errs
}
