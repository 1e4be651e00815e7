package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/subnet"
)

// subnets checks the guest's networks behind masquerade.
func subnets(path *field.Path, pod *v1.PodNetwork) field.ErrorList {
	if pod == nil {
		return nil
	}
	var errs field.ErrorList
	if _, err := subnet.IPv4(pod.VMNetworkCIDR); err != nil {
		errs = append(errs, field.Invalid(path.Child("vmNetworkCIDR"), short(pod.VMNetworkCIDR), err.Error()))
	}
	if _, err := subnet.IPv6(pod.VMIPv6NetworkCIDR); err != nil {
		errs = append(errs, field.Invalid(path.Child("vmIPv6NetworkCIDR"), short(pod.VMIPv6NetworkCIDR), err.Error()))
	}
	return errs
}
