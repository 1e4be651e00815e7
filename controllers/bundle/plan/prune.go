package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"virtstack.io/virtstack/api/v1alpha1"
)

const machines = "_kubevirt.io_VirtualMachine"

// disks are the ends of the IDs of what holds the disks of VMs.
var disks = []string{"_cdi.kubevirt.io_DataVolume", "__PersistentVolumeClaim"}

// holders are those of what takes all that is in it along.
var holders = []string{"__Namespace", "_apiextensions.k8s.io_CustomResourceDefinition"}

func isOne(of []string, r v1alpha1.ResourceRef) bool {
	return slices.ContainsFunc(of, func(k string) bool { return strings.HasSuffix(r.ID, k) })
}

// Prunes tells whether the Bundle removes what is left over, or now that it is being deleted all that it applied.
func Prunes(b *v1alpha1.Bundle) bool {
	if b.DeletionTimestamp != nil {
		return b.PrunesAtEnd()
	}
	return b.Spec.Prune != nil && b.Spec.Prune.Enabled
}

// prunable are those of refs that the Bundle lets be removed.
func prunable(b *v1alpha1.Bundle, refs []v1alpha1.ResourceRef) []v1alpha1.ResourceRef {
	if !Prunes(b) {
		return nil
	}
	if b.Spec.Prune == nil || b.Spec.Prune.VMs != v1alpha1.PruneKeep {
		return refs
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r v1alpha1.ResourceRef) bool {
		return strings.HasSuffix(r.ID, machines) || isOne(disks, r) || isOne(holders, r)
	})
}

// removals splits what is left over into what goes now, and what is kept for the sake of protected machines: they, and
// while there is one all disks, as any may be its own, and what would take it along.
func removals(s Seen) (gone, kept []v1alpha1.ResourceRef) {
	for _, r := range prunable(s.Bundle, s.Left) {
		if slices.Contains(s.Protected, r) || len(s.Protected) > 0 && (isOne(disks, r) || isOne(holders, r)) {
			kept = append(kept, r)
		} else {
			gone = append(gone, r)
		}
	}
	return gone, kept
}

// unapproved returns the failure of a revision that removes more machines than it may: nothing of it is applied.
func unapproved(s Seen) *Failure {
	p := s.Bundle.Spec.Prune
	if p == nil || p.MaxFraction == "" {
		return nil
	}
	most, err := strconv.Atoi(strings.TrimSuffix(p.MaxFraction, "%"))
	if err != nil {
		most = 0 // the schema lets nothing else in
	}
	all := only(machines, inventory(s.Bundle))
	gone := slices.DeleteFunc(only(machines, prunable(s.Bundle, minus(inventory(s.Bundle), s.Wanted))), func(r v1alpha1.ResourceRef) bool {
		return slices.Contains(p.Approved, machine(r))
	})
	if len(gone)*100 <= most*len(all) {
		return nil
	}
	var names []string
	for _, r := range gone {
		names = append(names, machine(r))
	}
	return &Failure{Reason: ApprovalNeeded, Final: true, Message: fmt.Sprintf(
		"%s: nothing was applied: it removes %d of %d VirtualMachines, and spec.prune.maxFraction is %s: to approve, commit to spec.prune.approved of the Bundle: [%s]",
		s.Revision, len(gone), len(all), p.MaxFraction, strings.Join(names, ", "))}
}

func only(kind string, refs []v1alpha1.ResourceRef) []v1alpha1.ResourceRef {
	return slices.DeleteFunc(slices.Clone(refs), func(r v1alpha1.ResourceRef) bool { return !strings.HasSuffix(r.ID, kind) })
}

// machine is namespace/name of a machine.
func machine(r v1alpha1.ResourceRef) string {
	return strings.Replace(strings.TrimSuffix(r.ID, machines), "_", "/", 1)
}
