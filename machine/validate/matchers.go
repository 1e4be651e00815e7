package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"

	"virtstack.io/virtstack/machine/instancetype"
)

// matchers checks how a machine names its instancetype and preference, not whether they are there; and what it may not
// say itself beside any instancetype.
func matchers(path *field.Path, spec *v1.VirtualMachineSpec) field.ErrorList {
	vm := &v1.VirtualMachine{Spec: *spec}
	errs := rooted(path, instancetype.CheckMatchers(vm))
	whole := true // the template's own size is not for a volume to decide
	for _, m := range instancetype.Matchers(vm) {
		if m.InferFromVolume != "" && spec.Template != nil && !hasVolume(spec.Template.Spec.Volumes, m.InferFromVolume) {
			at := path.Child(strings.TrimPrefix(m.Field().String(), "spec."), "inferFromVolume")
			errs = append(errs, field.Invalid(at, short(m.InferFromVolume), "must be the name of one of the machine's volumes"))
		}
		whole = whole && !(m.InferFromVolume != "" && m.Ignores() && !m.Preference)
	}
	if spec.Instancetype != nil && whole {
		errs = append(errs, rooted(path, instancetype.Conflicts(spec.Template, &v1beta1.VirtualMachineInstancetypeSpec{}))...)
	}
	return errs
}

// renamed refuses another instancetype or preference beside the revision of the one before: the revision would win, and
// the new name would mean nothing.
func renamed(vm, old *v1.VirtualMachine) field.ErrorList {
	var errs field.ErrorList
	before := instancetype.Matchers(old)
	for _, m := range instancetype.Matchers(vm) {
		for _, was := range before {
			if m.Preference == was.Preference && m.Name != was.Name && m.RevisionName != "" && m.RevisionName == was.RevisionName {
				errs = append(errs, field.Invalid(m.Field().Child("revisionName"), short(m.RevisionName),
					fmt.Sprintf("is a revision of %q: must be left out, or be one of %q", short(was.Name), short(m.Name))))
			}
		}
	}
	return errs
}

func hasVolume(list []v1.Volume, name string) bool {
	return slices.ContainsFunc(list, func(v v1.Volume) bool { return v.Name == name })
}

// rooted gives errors of a VM, whose paths start with spec, the path at which that spec is.
func rooted(path *field.Path, errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		err.Field = path.String() + strings.TrimPrefix(err.Field, "spec")
		err.Detail = strings.ReplaceAll(err.Detail, "spec.template.", path.String()+".template.")
		if value, is := err.BadValue.(string); is {
			err.BadValue = short(value)
		}
	}
	return errs
}

// claims checks the templates of DataVolumes: each says what to make and what from, and a volume uses it.
func claims(path *field.Path, spec *v1.VirtualMachineSpec) field.ErrorList {
	var errs field.ErrorList
	used := map[string]bool{}
	if spec.Template != nil {
		for _, v := range spec.Template.Spec.Volumes {
			if v.DataVolume != nil {
				used[v.DataVolume.Name] = true
			}
			if v.PersistentVolumeClaim != nil {
				used[v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	for i := range spec.DataVolumeTemplates {
		t, at := &spec.DataVolumeTemplates[i], path.Index(i)
		name := at.Child("metadata", "name")
		wrong := named(name, t.Name)
		if len(wrong) == 0 && !used[t.Name] {
			wrong = append(wrong, field.Invalid(name, short(t.Name), "must be used by one of the machine's volumes: add a volume with dataVolume.name"))
		}
		errs = append(errs, wrong...)
		errs = append(errs, dataVolume(at.Child("spec"), t)...)
	}
	return errs
}

func dataVolume(path *field.Path, t *v1.DataVolumeTemplateSpec) field.ErrorList {
	s := t.Spec
	var errs field.ErrorList
	switch {
	case s.PVC == nil && s.Storage == nil:
		errs = append(errs, field.Required(path, "must have one of pvc, storage"))
	case s.PVC != nil && s.Storage != nil:
		errs = append(errs, tooMany(path, []string{"pvc", "storage"})...)
	}
	elsewhere := s.PVC != nil && (s.PVC.DataSource != nil || s.PVC.DataSourceRef != nil) ||
		s.Storage != nil && (s.Storage.DataSource != nil || s.Storage.DataSourceRef != nil)
	switch {
	case s.Source != nil && s.SourceRef != nil:
		errs = append(errs, tooMany(path, []string{"source", "sourceRef"})...)
	case s.Source != nil:
		errs = append(errs, exactlyOne(path.Child("source"), *s.Source)...)
	case s.SourceRef == nil && !elsewhere:
		errs = append(errs, field.Required(path, "must have one of source, sourceRef, pvc.dataSourceRef"))
	}
	return errs
}
