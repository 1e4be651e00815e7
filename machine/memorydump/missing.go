package memorydump

import (
	"fmt"

	v1 "kubevirt.io/api/core/v1"
)

// Missing returns why a guest that runs as the one spec says has no way to a claim, and what its owner does about it;
// empty: it has one. wanted is what the next run will be, nil where that isn't known. A claim comes with the launcher's
// Pod: none is given to a guest that runs.
func Missing(runs, wanted *v1.VirtualMachineInstanceSpec, claim string) string {
	has := Volume(runs)
	if has != nil && has.MemoryDump.ClaimName == claim {
		return ""
	}
	if wanted != nil {
		if v := Volume(wanted); v != nil && v.MemoryDump.ClaimName == claim {
			return fmt.Sprintf("the guest was started without volume %q: restart the VM", v.Name)
		}
	}
	if has != nil {
		return fmt.Sprintf("claimName: Invalid value: %q: must be %q, the claim of memoryDump volume %q", claim, has.MemoryDump.ClaimName, has.Name)
	}
	return fmt.Sprintf("spec.template.spec.volumes: no memoryDump volume of claim %q: add {name: %s, memoryDump: {claimName: %s}}, with a commit where the VM comes from Git, and restart the VM", claim, claim, claim)
}
