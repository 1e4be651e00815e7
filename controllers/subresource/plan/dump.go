package plan

import (
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/memorydump"
	"virtstack.io/virtstack/machine/storage"
)

// RequestDump leaves a request for a memory dump, or for the end of its association with a claim, in the status.
type RequestDump struct {
	VM      *v1.VirtualMachine
	Request v1.VirtualMachineMemoryDumpRequest
}

func (a RequestDump) String() string {
	if a.Request.Remove {
		return "requesting that claim " + a.Request.ClaimName + " takes no more memory dumps"
	}
	return "requesting a memory dump to claim " + a.Request.ClaimName
}

// Patch returns a JSON patch that holds only while the request is the one that was seen.
func (a RequestDump) Patch() []byte {
	const path = "/status/memoryDumpRequest"
	return encode([]operation{
		{"test", "/metadata/uid", a.VM.UID},
		{"test", path, a.VM.Status.MemoryDumpRequest},
		{"add", path, a.Request},
	})
}

// DumpClaim returns the claim that a dump of a VM's memory would go to, or an API error that refuses it: the claim that
// is asked for or, if none is, that of the last dump.
func DumpClaim(s Seen, asked string) (string, error) {
	last := s.VM.Status.MemoryDumpRequest
	switch {
	case asked == "" && last == nil:
		return "", apierrors.NewBadRequest("claimName: Required value: must be the PersistentVolumeClaim that the first memory dump goes to")
	case asked == "":
		asked = last.ClaimName
	case len(validation.IsDNS1123Subdomain(asked)) > 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("claimName: Invalid value: %.100q: must be the name of a PersistentVolumeClaim", asked))
	case last != nil && last.ClaimName != asked:
		return "", Conflict(s.VM, "claimName: Invalid value: %q: memory dumps go to claim %q: end that with removememorydump first, or leave claimName out", asked, last.ClaimName)
	}
	switch {
	case s.VMI == nil:
		return "", apierrors.NewNotFound(v1.Resource("virtualmachineinstance"), s.VM.Name)
	case s.VMI.Status.Phase != v1.Running || s.VMI.DeletionTimestamp != nil:
		return "", Conflict(s.VM, "VM is not running")
	}
	return asked, nil
}

// Dump plans a dump of the memory of a VM that runs, or returns an API error that refuses it.
func Dump(s Seen, claim *k8sv1.PersistentVolumeClaim) ([]Action, error) {
	if why := unfit(&s.VMI.Spec, claim); why != "" {
		return nil, Conflict(s.VM, "PersistentVolumeClaim %s %s", claim.Name, why)
	}
	var wanted *v1.VirtualMachineInstanceSpec
	if s.VM.Spec.Template != nil {
		wanted = &s.VM.Spec.Template.Spec
	}
	if why := memorydump.Missing(&s.VMI.Spec, wanted, claim.Name); why != "" {
		return nil, Conflict(s.VM, "%s", why)
	}
	if last := s.VM.Status.MemoryDumpRequest; last != nil && last.Phase != v1.MemoryDumpCompleted && last.Phase != v1.MemoryDumpFailed {
		return nil, Conflict(s.VM, "a memory dump to claim %s is %s already: wait for its end, or take it back with removememorydump", last.ClaimName, last.Phase)
	}
	return []Action{RequestDump{s.VM, v1.VirtualMachineMemoryDumpRequest{ClaimName: claim.Name, Phase: v1.MemoryDumpAssociating}}}, nil
}

// unfit says why a claim can't take the memory of a machine; empty: it can.
func unfit(spec *v1.VirtualMachineInstanceSpec, claim *k8sv1.PersistentVolumeClaim) string {
	if storage.Block(claim.Spec.VolumeMode) {
		return "has volumeMode Block: must be Filesystem, for dumps are files"
	}
	if modes := claim.Spec.AccessModes; len(modes) == 1 && modes[0] == k8sv1.ReadOnlyMany {
		return "has accessModes ReadOnlyMany: must be one that can be written to"
	}
	has, needs := claim.Spec.Resources.Requests[k8sv1.ResourceStorage], memorydump.Needs(spec)
	if has.Value() < needs {
		return fmt.Sprintf("has %s: must have at least %s for the guest's memory", has.String(), inMiB(needs))
	}
	return ""
}

// inMiB returns bytes as a quantity, rounded up to whole MiB.
func inMiB(bytes int64) string {
	return resource.NewQuantity((bytes+storage.MiB-1)/storage.MiB*storage.MiB, resource.BinarySI).String()
}

// RemoveDump plans the end of the association of a VM's memory dumps with their claim, or returns an API error that
// refuses it. A dump that is being made ends without a file; those that are on the claim stay.
func RemoveDump(s Seen) ([]Action, error) {
	last := s.VM.Status.MemoryDumpRequest
	switch {
	case last == nil:
		return nil, Conflict(s.VM, "no claim takes memory dumps of the VM: there is nothing to remove")
	case last.Remove:
		return nil, Conflict(s.VM, "the removal of claim %s was asked for already", last.ClaimName)
	}
	request := *last.DeepCopy()
	request.Remove, request.Phase = true, v1.MemoryDumpDissociating
	return []Action{RequestDump{s.VM, request}}, nil
}
