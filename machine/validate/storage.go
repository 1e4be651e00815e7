package validate

import (
	"encoding/json"
	"fmt"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	snapshot "kubevirt.io/api/snapshot/v1beta1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/mac"
)

const (
	machines  = "kubevirt.io"
	snapshots = "snapshot.kubevirt.io"
	backups   = "backup.kubevirt.io"

	snapshotGate = "Snapshot"
)

// kindOf is a kind that a reference may name.
type kindOf struct{ group, kind string }

func (k kindOf) String() string {
	if k.group == "" {
		return k.kind
	}
	return k.kind + " of " + k.group
}

// refers wants a reference to one of the kinds.
func refers(path *field.Path, r k8sv1.TypedLocalObjectReference, allowed ...kindOf) field.ErrorList {
	group := ""
	if r.APIGroup != nil {
		group = *r.APIGroup
	}
	var right []string
	groups, found := false, false
	for _, k := range allowed {
		right = append(right, k.String())
		groups = groups || k.group == group
		found = found || k == kindOf{group, r.Kind}
	}
	var errs field.ErrorList
	switch {
	case r.APIGroup == nil && !groups:
		errs = append(errs, &field.Error{Type: field.ErrorTypeNotFound, Field: path.Child("apiGroup").String(), BadValue: "",
			Detail: "must be given: " + strings.Join(right, " or ")})
	case !groups:
		errs = append(errs, field.Invalid(path.Child("apiGroup"), short(group), "must be that of "+strings.Join(right, " or ")))
	case !found:
		errs = append(errs, field.Invalid(path.Child("kind"), short(r.Kind), "must be "+strings.Join(right, " or ")))
	}
	return append(errs, named(path.Child("name"), r.Name)...)
}

// gated refuses a new object of a kind whose gate is off.
func gated(c config.Config, gate, what string) field.ErrorList {
	if c.Enabled(gate) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), fmt.Sprintf("%s needs the feature gate %s: add it to "+
		"spec.configuration.developerConfiguration.featureGates of the KubeVirt", what, gate))}
}

// immutable refuses a changed spec.
func immutable(now, old any) field.ErrorList {
	if equality.Semantic.DeepEqual(now, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, "must stay as it was made: make another object")}
}

func machineSnapshot(s, old *snapshotKind, c config.Config) Verdict {
	if old != nil {
		return Verdict{Errors: immutable(s.Spec, old.Spec)}
	}
	errs := gated(c, snapshotGate, "a snapshot")
	return Verdict{Errors: append(errs, refers(field.NewPath("spec", "source"), s.Spec.Source, kindOf{machines, "VirtualMachine"})...)}
}

func restore(r, old *restoreKind, c config.Config) Verdict {
	if old != nil {
		return Verdict{Errors: immutable(r.Spec, old.Spec)}
	}
	path := field.NewPath("spec")
	errs := gated(c, snapshotGate, "a restore")
	errs = append(errs, refers(path.Child("target"), r.Spec.Target, kindOf{machines, "VirtualMachine"})...)
	errs = append(errs, named(path.Child("virtualMachineSnapshotName"), r.Spec.VirtualMachineSnapshotName)...)
	if p := r.Spec.VolumeRestorePolicy; p != nil {
		errs = append(errs, oneOf(path.Child("volumeRestorePolicy"), *p, []snapshot.VolumeRestorePolicy{
			snapshot.VolumeRestorePolicyInPlace, snapshot.VolumeRestorePolicyRandomizeNames, snapshot.VolumeRestorePolicyPrefixTargetName})...)
	}
	if p := r.Spec.VolumeOwnershipPolicy; p != nil {
		errs = append(errs, oneOf(path.Child("volumeOwnershipPolicy"), *p, []snapshot.VolumeOwnershipPolicy{
			snapshot.VolumeOwnershipPolicyVm, snapshot.VolumeOwnershipPolicyNone})...)
	}
	for i, o := range r.Spec.VolumeRestoreOverrides {
		at := path.Child("volumeRestoreOverrides").Index(i)
		if o.VolumeName == "" {
			errs = append(errs, field.Required(at.Child("volumeName"), "must be the name of a volume of the snapshot"))
		}
		if o.RestoreName == "" && len(o.Labels)+len(o.Annotations) == 0 {
			errs = append(errs, field.Required(at, "must have one of restoreName, labels, annotations"))
		}
	}
	for i, p := range r.Spec.Patches {
		errs = append(errs, restorePatch(path.Child("patches").Index(i), p)...)
	}
	return Verdict{Errors: errs}
}

// operation is one operation of a JSON patch.
type operation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
}

func restorePatch(path *field.Path, text string) field.ErrorList {
	const right = `must be one operation of a JSON patch on /spec/, /metadata/labels/ or /metadata/annotations/, such as {"op":"remove","path":"/spec/running"}`
	var o operation
	if err := json.Unmarshal([]byte(text), &o); err != nil || o.Op == "" {
		return field.ErrorList{field.Invalid(path, short(text), right)}
	}
	for _, prefix := range []string{"/spec/", "/metadata/labels/", "/metadata/annotations/"} {
		if strings.HasPrefix(o.Path, prefix) {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(path, short(o.Path), right)}
}

func machineExport(e, old *exportKind, c config.Config) Verdict {
	if old != nil {
		return Verdict{Errors: immutable(e.Spec, old.Spec)}
	}
	errs := gated(c, "VMExport", "an export")
	return Verdict{Errors: append(errs, refers(field.NewPath("spec", "source"), e.Spec.Source, kindOf{"", "PersistentVolumeClaim"},
		kindOf{snapshots, "VirtualMachineSnapshot"}, kindOf{machines, "VirtualMachine"}, kindOf{backups, "VirtualMachineBackup"})...)}
}

func machineClone(k, old *cloneKind, c config.Config) Verdict {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if old == nil {
		errs = gated(c, snapshotGate, "a clone")
	}
	source, target := k.Spec.Source, k.Spec.Target
	if source == nil {
		return Verdict{Errors: append(errs, field.Required(path.Child("source"), "must name a VirtualMachine or a VirtualMachineSnapshot"))}
	}
	errs = append(errs, refers(path.Child("source"), *source, kindOf{machines, "VirtualMachine"}, kindOf{snapshots, "VirtualMachineSnapshot"})...)
	if target != nil && target.Kind != "" && target.Kind != "VirtualMachine" {
		errs = append(errs, field.Invalid(path.Child("target", "kind"), short(target.Kind), "must be VirtualMachine"))
	}
	if target != nil && target.Name != "" && source.Kind == "VirtualMachine" && target.Name == source.Name {
		errs = append(errs, field.Invalid(path.Child("target", "name"), short(target.Name), "must not be the source"))
	}
	for _, list := range []struct {
		at      *field.Path
		filters []string
	}{
		{path.Child("annotationFilters"), k.Spec.AnnotationFilters}, {path.Child("labelFilters"), k.Spec.LabelFilters},
		{path.Child("template", "annotationFilters"), k.Spec.Template.AnnotationFilters},
		{path.Child("template", "labelFilters"), k.Spec.Template.LabelFilters},
	} {
		errs = append(errs, filters(list.at, list.filters)...)
	}
	for name, address := range k.Spec.NewMacAddresses {
		if _, err := mac.Parse(address); address != "" && err != nil {
			errs = append(errs, field.Invalid(path.Child("newMacAddresses").Key(short(name)), short(address), err.Error()))
		}
	}
	sortErrors(errs)
	for i, p := range k.Spec.Patches {
		if !json.Valid([]byte(p)) {
			errs = append(errs, field.Invalid(path.Child("patches").Index(i), short(p), "must be JSON: one operation of a JSON patch"))
		}
	}
	return Verdict{Errors: errs}
}

// filters wants '!' at the start only, before something, and '*' at the end only.
func filters(path *field.Path, list []string) field.ErrorList {
	var errs field.ErrorList
	for i, f := range list {
		wrong := f == "!" || len(f) > 1 && (strings.Contains(f[1:], "!") || strings.Contains(f[:len(f)-1], "*"))
		if wrong {
			errs = append(errs, field.Invalid(path.Index(i), short(f), "must have '!' only before what is left out, and '*' only at its end, such as !example.com/*"))
		}
	}
	return errs
}

const backupGate = "IncrementalBackup"

func machineBackup(b, old *backupKind, c config.Config) Verdict {
	if old != nil {
		return Verdict{Errors: immutable(b.Spec, old.Spec)}
	}
	path := field.NewPath("spec")
	errs := gated(c, backupGate, "a backup")
	errs = append(errs, refers(path.Child("source"), b.Spec.Source, kindOf{machines, "VirtualMachine"}, kindOf{backups, "VirtualMachineBackupTracker"})...)
	if b.Spec.PvcName == nil || *b.Spec.PvcName == "" {
		errs = append(errs, field.Required(path.Child("pvcName"), "must name the claim that is written to"))
	}
	if b.Spec.Mode != nil && *b.Spec.Mode == "Pull" && b.Spec.TokenSecretRef == "" {
		errs = append(errs, field.Required(path.Child("tokenSecretRef"), "must name the Secret with the token for mode Pull"))
	}
	return Verdict{Errors: errs}
}

func tracker(t, old *trackerKind, c config.Config) Verdict {
	if old != nil {
		return Verdict{Errors: immutable(t.Spec, old.Spec)}
	}
	errs := gated(c, backupGate, "a backup tracker")
	return Verdict{Errors: append(errs, refers(field.NewPath("spec", "source"), t.Spec.Source, kindOf{machines, "VirtualMachine"})...)}
}
