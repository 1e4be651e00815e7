package revision

import (
	"context"
	"errors"
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/instancetype"
)

// errUnclear is wrapped by what may come yet, or be put right. Unlike instancetype.ErrNotInferred it is never ignored:
// that would be for good.
var errUnclear = errors.New("not clear yet")

// source is what a volume's data comes from, with the labels that may tell its instancetype.
type source struct {
	what   string
	labels map[string]string
	// from is where it was made from, asked where the labels say nothing; nil: from nothing that could be asked.
	from *origin
}

// origin names the claim or the DataSource that data was copied from. Exactly one of the two is set.
type origin struct {
	claim, dataSource types.NamespacedName
}

// infer completes a matcher that leaves the name to a volume: by the labels of its claim, or of its DataVolume, else of
// what that was copied from.
func (f Finder) infer(ctx context.Context, vm *v1.VirtualMachine, m instancetype.Matcher) (instancetype.Matcher, error) {
	if m.InferFromVolume == "" {
		return m, nil
	}
	found, err := f.volume(ctx, vm, m.InferFromVolume)
	for err == nil {
		inferred, silent := m.Infer(found.labels)
		switch {
		case silent == nil:
			return inferred, nil
		case !errors.Is(silent, instancetype.ErrNotInferred):
			return m, fmt.Errorf("volume %q: %s: %w: %w", m.InferFromVolume, found.what, errUnclear, silent)
		case found.from == nil:
			return m, fmt.Errorf("volume %q: %s: %w", m.InferFromVolume, found.what, silent)
		}
		found, err = f.follow(ctx, *found.from)
	}
	return m, fmt.Errorf("volume %q: %w", m.InferFromVolume, err)
}

// volume returns the source of a volume of the VM.
func (f Finder) volume(ctx context.Context, vm *v1.VirtualMachine, name string) (source, error) {
	if vm.Spec.Template == nil {
		return source{}, fmt.Errorf("%w: the VM has no volumes", errUnclear)
	}
	for _, v := range vm.Spec.Template.Spec.Volumes {
		switch {
		case v.Name != name:
		case v.PersistentVolumeClaim != nil:
			return f.claim(ctx, types.NamespacedName{Namespace: vm.Namespace, Name: v.PersistentVolumeClaim.ClaimName})
		case v.DataVolume != nil:
			return f.dataVolume(ctx, vm, v.DataVolume.Name)
		default:
			return source{}, fmt.Errorf("%w: it is neither a persistentVolumeClaim nor a dataVolume", instancetype.ErrNotInferred)
		}
	}
	return source{}, fmt.Errorf("%w: the VM's template has no such volume", errUnclear)
}

func (f Finder) follow(ctx context.Context, o origin) (source, error) {
	if o.claim.Name != "" {
		return f.claim(ctx, o.claim)
	}
	return f.dataSource(ctx, o.dataSource)
}

func (f Finder) claim(ctx context.Context, key types.NamespacedName) (source, error) {
	pvc := &k8sv1.PersistentVolumeClaim{}
	err := f.Live.Get(ctx, key, pvc)
	return source{what: "PersistentVolumeClaim " + key.String(), labels: pvc.Labels}, awaited(err, "PersistentVolumeClaim", key)
}

// dataVolume returns what the VM's template of the name, or else the DataVolume, was made from. A DataVolume that is not
// there may have been cleaned up after its import: the claim has its name and its labels.
func (f Finder) dataVolume(ctx context.Context, vm *v1.VirtualMachine, name string) (source, error) {
	key := types.NamespacedName{Namespace: vm.Namespace, Name: name}
	for i := range vm.Spec.DataVolumeTemplates {
		if t := &vm.Spec.DataVolumeTemplates[i]; t.Name == name {
			return source{what: "dataVolumeTemplate " + name, labels: t.Labels, from: origins(&t.Spec, vm.Namespace)}, nil
		}
	}
	dv := &cdi.DataVolume{}
	err := f.importer(ctx, key, "DataVolume", dv)
	if errors.Is(err, errUnclear) {
		return f.claim(ctx, key)
	}
	return source{what: "DataVolume " + key.String(), labels: dv.Labels, from: origins(&dv.Spec, vm.Namespace)}, err
}

func (f Finder) dataSource(ctx context.Context, key types.NamespacedName) (source, error) {
	ds := &cdi.DataSource{}
	err := f.importer(ctx, key, "DataSource", ds)
	out := source{what: "DataSource " + key.String(), labels: ds.Labels}
	if pvc := ds.Spec.Source.PVC; pvc != nil {
		out.from = &origin{claim: within(pvc.Namespace, pvc.Name, key.Namespace)}
	}
	return out, err
}

// origins returns what a DataVolume in the namespace is made from; nil where that carries no labels.
func origins(spec *cdi.DataVolumeSpec, namespace string) *origin {
	switch {
	case spec.Source != nil && spec.Source.PVC != nil:
		return &origin{claim: within(spec.Source.PVC.Namespace, spec.Source.PVC.Name, namespace)}
	case spec.SourceRef != nil && spec.SourceRef.Kind == cdi.DataVolumeDataSource && spec.SourceRef.Namespace != nil:
		return &origin{dataSource: within(*spec.SourceRef.Namespace, spec.SourceRef.Name, namespace)}
	case spec.SourceRef != nil && spec.SourceRef.Kind == cdi.DataVolumeDataSource:
		return &origin{dataSource: within("", spec.SourceRef.Name, namespace)}
	}
	return nil
}

func within(namespace, name, otherwise string) types.NamespacedName {
	if namespace == "" {
		namespace = otherwise
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// importer reads an object of the importer of data, whose kinds a cluster may lack.
func (f Finder) importer(ctx context.Context, key types.NamespacedName, kind string, into any) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: cdi.SchemeGroupVersion.Group, Version: cdi.SchemeGroupVersion.Version, Kind: kind})
	if err := awaited(f.Live.Get(ctx, key, object), kind, key); err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	return nil
}

// awaited makes errUnclear of an object that isn't there, or whose kind isn't.
func awaited(err error, kind string, key client.ObjectKey) error {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return fmt.Errorf("%w: there is no %s %s", errUnclear, kind, key)
	}
	return err
}
