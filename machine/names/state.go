package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

// StateLabel is on the claim of a machine's state, with the machine's name.
const StateLabel = "persistent-state-for"

// StateOwner returns what a VMI's state belongs to: its VM, or the VMI itself where no VM made it.
func StateOwner(vmi *v1.VirtualMachineInstance) metav1.OwnerReference {
	for _, r := range vmi.OwnerReferences {
		if r.Controller != nil && *r.Controller && r.Kind == v1.VirtualMachineGroupVersionKind.Kind {
			return metav1.OwnerReference{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name, UID: r.UID}
		}
	}
	kind := v1.VirtualMachineInstanceGroupVersionKind
	return metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: vmi.Name, UID: vmi.UID}
}

// StateClaim returns the name of the claim of a VMI's state: persistent-state-for-<machine>-<tail>, at most 253
// characters. The tail is hashed from the owner's UID, so that a VM made again under the same name has a state of its own.
func StateClaim(vmi *v1.VirtualMachineInstance) string {
	owner := StateOwner(vmi)
	sum := sha256.Sum256([]byte(owner.UID))
	const room = 253 - len(StateLabel) - 2 - 12
	name := owner.Name
	if len(name) > room {
		name = strings.Trim(name[:room], "-.")
	}
	return StateLabel + "-" + name + "-" + hex.EncodeToString(sum[:6])
}
