// Package revision finds what a VM's matchers mean: an instancetype and a preference as they are now, or as a
// ControllerRevision keeps them for the VM. It reads and never writes.
package revision

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/instancetype"
)

// Finder finds instancetypes and preferences.
type Finder struct {
	// Client may read from a cache, Live from the API server alone.
	Client, Live client.Reader
}

// Kinds are those of instancetypes and preferences, each with an empty object.
func Kinds() map[string]instancetype.Object {
	return map[string]instancetype.Object{
		instancetype.Instancetype:        &v1beta1.VirtualMachineInstancetype{},
		instancetype.ClusterInstancetype: &v1beta1.VirtualMachineClusterInstancetype{},
		instancetype.Preference:          &v1beta1.VirtualMachinePreference{},
		instancetype.ClusterPreference:   &v1beta1.VirtualMachineClusterPreference{},
	}
}

// Kept returns what the VM's status records for a matcher; nil if nothing.
func Kept(vm *v1.VirtualMachine, m instancetype.Matcher) *v1.InstancetypeStatusRef {
	if m.Preference {
		return vm.Status.PreferenceRef
	}
	return vm.Status.InstancetypeRef
}

// Find finds what the VM's matchers name. What isn't there is a fact, no error.
func (f Finder) Find(ctx context.Context, vm *v1.VirtualMachine) (instancetype.Found, error) {
	var out instancetype.Found
	for _, m := range instancetype.Matchers(vm) {
		missing, err := f.one(ctx, vm, m, &out)
		if err != nil {
			return out, fmt.Errorf("resolving %s: %w", m.Field(), err)
		}
		if missing != "" {
			out.Missing = &instancetype.Missing{Preference: m.Preference, Message: m.Field().String() + ": " + missing, Infer: m.InferFromVolume != ""}
			return out, nil
		}
	}
	return out, nil
}

// one adds one matcher's to out, or says what isn't there.
func (f Finder) one(ctx context.Context, vm *v1.VirtualMachine, m instancetype.Matcher, out *instancetype.Found) (missing string, err error) {
	ref := Kept(vm, m)
	if m.RevisionName == "" && m.Kept(ref) {
		if ref.ControllerRevisionRef == nil {
			out.Record(m, ref) // its volume said nothing, which was to be ignored
			return "", nil
		}
		missing, err = f.restore(ctx, vm, m, ref, out)
		if missing == "" || err != nil {
			return "", err
		}
	}
	inferred, err := f.infer(ctx, vm, m)
	switch {
	case errors.Is(err, instancetype.ErrNotInferred) && m.Ignores():
		out.Record(m, &v1.InstancetypeStatusRef{InferFromVolume: m.InferFromVolume, InferFromVolumeFailurePolicy: m.Policy})
		return "", nil
	case errors.Is(err, instancetype.ErrNotInferred) || errors.Is(err, errUnclear):
		return err.Error(), nil
	case err != nil:
		return "", err
	}
	r, ok := inferred.Reference(vm.Namespace)
	if !ok {
		return fmt.Sprintf("kind %q is none of instancetypes or preferences", inferred.Kind), nil
	}
	if m.RevisionName != "" {
		return f.restore(ctx, vm, m, inferred.Ref(r, m.RevisionName), out)
	}
	return f.current(ctx, vm, inferred, r, out)
}

// restore reads the revision that ref names.
func (f Finder) restore(ctx context.Context, vm *v1.VirtualMachine, m instancetype.Matcher, ref *v1.InstancetypeStatusRef, out *instancetype.Found) (missing string, err error) {
	revision := &appsv1.ControllerRevision{}
	key := types.NamespacedName{Namespace: vm.Namespace, Name: ref.ControllerRevisionRef.Name}
	err = f.Client.Get(ctx, key, revision)
	if apierrors.IsNotFound(err) {
		err = f.Live.Get(ctx, key, revision) // a cache has ours alone, and may not have them yet
	}
	if apierrors.IsNotFound(err) {
		return "there is no ControllerRevision " + key.String(), nil
	}
	if err != nil {
		return "", err
	}
	if err := m.Read(&out.Choice, revision); err != nil {
		return err.Error(), nil
	}
	out.Use(m, ref)
	return "", nil
}

// current reads the instancetype or preference that r names, to be stored.
func (f Finder) current(ctx context.Context, vm *v1.VirtualMachine, m instancetype.Matcher, r instancetype.Reference, out *instancetype.Found) (missing string, err error) {
	object := Kinds()[r.Kind]
	err = f.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, object.(client.Object))
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("there is no %s; the VM starts when there is", r), nil
	}
	if err != nil {
		return "", err
	}
	revision, err := instancetype.Stored(vm, r.Kind, object)
	if err != nil {
		return "", err
	}
	if err := m.Read(&out.Choice, revision); err != nil {
		return "", err
	}
	out.Store = append(out.Store, revision)
	out.Use(m, m.Ref(r, revision.Name))
	return "", nil
}
