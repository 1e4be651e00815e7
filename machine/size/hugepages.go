package size

import (
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"
)

// pageSize returns that of the huge pages which a guest's memory is made of, in bytes; 0: of none, or of a size that
// admission and the launcher refuse.
func pageSize(d *v1.DomainSpec) int64 {
	if d.Memory == nil || d.Memory.Hugepages == nil || d.Memory.Guest == nil {
		return 0
	}
	size, err := resource.ParseQuantity(strings.TrimSpace(d.Memory.Hugepages.PageSize))
	if err != nil {
		return 0
	}
	return max(0, size.Value())
}

// beside returns how much of an amount for the guest is not in huge pages.
func beside(q resource.Quantity, d *v1.DomainSpec) resource.Quantity {
	if pageSize(d) == 0 {
		return q.DeepCopy()
	}
	return *resource.NewQuantity(max(0, q.Value()-d.Memory.Guest.Value()), resource.BinarySI)
}

// addHugepages asks for the guest's memory in whole pages.
func addHugepages(out *k8sv1.ResourceRequirements, d *v1.DomainSpec) {
	page := pageSize(d)
	if page == 0 {
		return
	}
	pages := *resource.NewQuantity((d.Memory.Guest.Value()+page-1)/page*page, resource.BinarySI)
	// Kubernetes knows only one spelling of each size.
	name := k8sv1.ResourceName(k8sv1.ResourceHugePagesPrefix + resource.NewQuantity(page, resource.BinarySI).String())
	out.Requests[name], out.Limits[name] = pages, pages
}
