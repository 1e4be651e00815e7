package bundle

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/release"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/storage"
)

// inTheWay returns the machines of left that write to a claim which one that isn't healthy is to write to: where a machine
// is renamed, the new one can't start before the old one is gone.
func (r *round) inTheWay(ctx context.Context, left []release.Ref, unhealthy []release.Health) ([]release.Ref, error) {
	heirs := map[string]bool{} // of the claims of namespace/name, whether every disk there is shareable
	for _, o := range r.objects {
		ref := release.RefOf(o.Unstructured)
		if !slices.ContainsFunc(unhealthy, func(h release.Health) bool { return h.Object.ID() == ref.ID() }) {
			continue
		}
		for claim, shared := range writes(o.Unstructured) {
			before, ok := heirs[claim]
			heirs[claim] = shared && (before || !ok)
		}
	}
	var found []release.Ref
	for _, ref := range left {
		if len(heirs) == 0 || ref.GroupKind != names.Machine {
			continue
		}
		u := ref.Empty()
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(u), u); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading %s: %w", ref, err)
		}
		for claim, shared := range writes(u) {
			if theirs, wanted := heirs[claim]; wanted && !(shared && theirs) {
				found = append(found, ref)
				break
			}
		}
	}
	return found, nil
}

// writes returns the claims, as namespace/name, that a machine writes to and that outlive it, and of each whether its
// disks there are shareable. Of what is no machine, or can't be read as one, there are none.
func writes(u *unstructured.Unstructured) map[string]bool {
	vm := &v1.VirtualMachine{}
	if u.GroupVersionKind().GroupKind() != names.Machine || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, vm) != nil || vm.Spec.Template == nil {
		return nil
	}
	all := map[string]bool{}
	for claim, shared := range storage.Writes(&vm.Spec.Template.Spec) {
		ends := slices.ContainsFunc(vm.Spec.DataVolumeTemplates, func(t v1.DataVolumeTemplateSpec) bool { return t.Name == claim })
		if !ends {
			all[u.GetNamespace()+"/"+claim] = shared
		}
	}
	return all
}
