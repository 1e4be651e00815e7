package plan

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
)

// CauseCommit is the type of the status cause whose message is the line to commit.
const CauseCommit metav1.CauseType = "CommitInstead"

// Owner is the Git tool that owns a field.
type Owner = names.GitOwner

// GitOwner returns the Git tool that owns the field of an object, if one does; others are managers that count as one
// beside the known.
func GitOwner(obj metav1.Object, others []string, path ...string) (Owner, bool) {
	parts := make([]any, len(path))
	for i := range path {
		parts[i] = path[i]
	}
	field, err := fieldpath.MakePath(parts...)
	if err != nil {
		return Owner{}, false
	}
	for _, entry := range obj.GetManagedFields() {
		if names.GitManager(entry.Manager, others...) && entry.Subresource == "" && owns(entry, field) {
			return Owner{Manager: entry.Manager, Source: names.GitSource(obj, entry.Manager)}, true
		}
	}
	return Owner{}, false
}

func owns(entry metav1.ManagedFieldsEntry, field fieldpath.Path) bool {
	owned, err := names.Owns(entry, field)
	return owned || err != nil // what can't be read is taken as owned: the field is Git's in doubt
}

// gitRefusal refuses to write the run strategy where a Git tool owns it, and says what to commit instead. The same
// comes as status causes for clients: who owns the field, and the line.
func gitRefusal(s Seen, run bool) error {
	vm := s.VM
	field := "runStrategy"
	if vm.Spec.Running != nil {
		field = "running"
	}
	owner, owned := GitOwner(vm, s.GitManagers, "spec", field)
	if !owned {
		return nil
	}
	line := strategyLine(vm, run)
	err := apierrors.NewConflict(v1.Resource("virtualmachine"), vm.Name, fmt.Errorf(
		"spec.%s comes from Git: it is applied by %s; commit %q there instead of %q",
		field, owner, line, strategyLine(vm, !run)))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldManagerConflict, Field: "spec." + field, Message: owner.String()},
		{Type: CauseCommit, Field: "spec." + field, Message: line},
	}
	return err
}
