package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"virtstack.io/virtstack/api/v1alpha1"
	gitplan "virtstack.io/virtstack/gitops/plan"
	"virtstack.io/virtstack/machine/names"
)

// isOf tells whether an object is of one of these kinds.
func isOf(kinds []schema.GroupKind, r v1alpha1.ResourceRef) bool {
	return slices.ContainsFunc(kinds, func(k schema.GroupKind) bool { return strings.HasSuffix(r.ID, suffix(k)) })
}

// suffix is how the IDs of a kind's objects end.
func suffix(k schema.GroupKind) string { return "_" + k.Group + "_" + k.Kind }

// Prunes tells whether the Bundle removes what is left over, or now that it is being deleted all that it applied.
func Prunes(b *v1alpha1.Bundle) bool {
	if b.DeletionTimestamp != nil {
		return b.PrunesAtEnd()
	}
	return b.Prunes()
}

// prunable are those of refs that the Bundle lets be removed.
func prunable(b *v1alpha1.Bundle, refs []v1alpha1.ResourceRef) []v1alpha1.ResourceRef {
	if !Prunes(b) {
		return nil
	}
	if b.Spec.Prune == nil || b.Spec.Prune.VMs != v1alpha1.PruneKeep {
		return refs
	}
	kept := append([]schema.GroupKind{names.Machine}, names.Carriers...)
	return slices.DeleteFunc(slices.Clone(refs), func(r v1alpha1.ResourceRef) bool { return isOf(kept, r) })
}

// removals splits what is left over into what goes now, and what is kept for the sake of protected machines: they, and
// while there is one all disks, as any may be its own, and what would take it along.
func removals(s Seen) (gone, kept []v1alpha1.ResourceRef) {
	for _, r := range prunable(s.Bundle, s.Left) {
		if slices.Contains(s.Protected, r) || len(s.Protected) > 0 && isOf(names.Carriers, r) {
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
	all := machines(inventory(s.Bundle))
	gone := slices.DeleteFunc(machines(prunable(s.Bundle, minus(inventory(s.Bundle), s.Wanted))), func(r v1alpha1.ResourceRef) bool {
		return slices.Contains(p.Approved, machine(r))
	})
	whole := digest(gone)
	if len(gone)*100 <= most*len(all) || slices.Contains(p.Approved, whole) {
		return nil
	}
	return &Failure{Reason: ApprovalNeeded, Final: true, Message: fmt.Sprintf(
		"%s: nothing was applied: it removes %d of %d VirtualMachines, and spec.prune.maxFraction is %s: to approve, commit to spec.prune.approved of the Bundle: %s",
		s.Revision, len(gone), len(all), p.MaxFraction, approval(gone, whole))}
}

// longest is how much of a message the names of machines may take.
const longest = 1000

// approval is what approves the removal: the names, or where they are too many to be said the digest of them all, with
// as many names as fit for people to see whom it means.
func approval(gone []v1alpha1.ResourceRef, whole string) string {
	var list []string
	length := 0
	for _, r := range gone {
		if length += len(machine(r)) + 2; length > longest {
			break
		}
		list = append(list, machine(r))
	}
	if len(list) == len(gone) {
		return "[" + strings.Join(list, ", ") + "]"
	}
	return fmt.Sprintf("[%q], which stands for these %d and no others: %s and %d more, which virtctl plan names",
		whole, len(gone), strings.Join(list, ", "), len(gone)-len(list))
}

// digest stands for exactly these machines; virtctl plan says the same one.
func digest(refs []v1alpha1.ResourceRef) string {
	var list []string
	for _, r := range refs {
		list = append(list, machine(r))
	}
	return gitplan.Approval(list)
}

func machines(refs []v1alpha1.ResourceRef) []v1alpha1.ResourceRef {
	vm := []schema.GroupKind{names.Machine}
	return slices.DeleteFunc(slices.Clone(refs), func(r v1alpha1.ResourceRef) bool { return !isOf(vm, r) })
}

// machine is namespace/name of a machine.
func machine(r v1alpha1.ResourceRef) string {
	return strings.Replace(strings.TrimSuffix(r.ID, suffix(names.Machine)), "_", "/", 1)
}
