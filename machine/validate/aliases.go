package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// aliases wants devices of different kinds to have different names: libvirt knows a device by its name alone, and takes
// no two of one name. Those of one list are compared where the list is checked.
func aliases(path *field.Path, d *v1.Devices) field.ErrorList {
	type device struct {
		kind, name string
		at         *field.Path
	}
	var all []device
	for i, disk := range d.Disks {
		all = append(all, device{"disk", disk.Name, path.Child("disks").Index(i).Child("name")})
	}
	for i, nic := range d.Interfaces {
		all = append(all, device{"interface", nic.Name, path.Child("interfaces").Index(i).Child("name")})
	}
	for i, input := range d.Inputs {
		all = append(all, device{"input", input.Name, path.Child("inputs").Index(i).Child("name")})
	}
	if d.Watchdog != nil {
		all = append(all, device{"watchdog", d.Watchdog.Name, path.Child("watchdog", "name")})
	}
	if d.Sound != nil {
		all = append(all, device{"sound", d.Sound.Name, path.Child("sound", "name")})
	}
	var errs field.ErrorList
	first := map[string]device{}
	for _, one := range all {
		other, seen := first[one.name]
		switch {
		case !seen:
			first[one.name] = one
		case one.name != "" && (other.kind != one.kind || one.kind == "input"):
			err := field.Duplicate(one.at, short(one.name))
			err.Detail = fmt.Sprintf("must be another name than that of %s: libvirt knows devices by it", other.at)
			errs = append(errs, err)
		}
	}
	return errs
}
