package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/lifecycle"
)

const (
	runningDeprecated = "spec.running is deprecated, please use spec.runStrategy instead."
	presetDeprecated  = "kubevirt.io/v1 VirtualMachineInstancePreset is deprecated: use an instancetype and a preference."
)

// Reserved are the labels by which components find instances, Pods and nodes: only components may set them.
var Reserved = []string{
	v1.CreatedByLabel, v1.MigrationJobLabel, v1.NodeNameLabel, v1.MigrationTargetNodeNameLabel, v1.NodeSchedulable,
	v1.InstallStrategyLabel,
}

func virtualMachine(vm, old *machineKind, c config.Config) Verdict {
	// Rules are for what is asked for, not for letting go.
	if vm.DeletionTimestamp != nil || old != nil && equality.Semantic.DeepEqual(old.Spec, vm.Spec) {
		return Verdict{}
	}
	v := Verdict{Errors: VM(vm)}
	if vm.Spec.Running != nil {
		v.Warnings = append(v.Warnings, runningDeprecated)
	}
	if t := vm.Spec.Template; t != nil {
		v.Errors = append(v.Errors, template(field.NewPath("spec", "template"), t, c)...)
		v.Warnings = append(v.Warnings, silent(field.NewPath("spec", "template", "spec"), &t.Spec)...)
		v.Warnings = append(v.Warnings, untracked(field.NewPath("spec", "template", "metadata"), t.ObjectMeta)...)
	}
	if s := vm.Spec.UpdateVolumesStrategy; s != nil && *s == v1.UpdateVolumesStrategyMigration {
		v.Warnings = append(v.Warnings, "spec.updateVolumesStrategy has no effect in this version: there are no migrations yet, and changed volumes come with a restart")
	}
	if old != nil {
		v.Errors = append(v.Errors, renamed(vm, old)...)
		v.Errors = append(v.Errors, frozen(vm, old)...)
	}
	return v
}

// template checks what the cluster has to say about a machine, and the labels that it starts with.
func template(path *field.Path, t *v1.VirtualMachineInstanceTemplateSpec, c config.Config) field.ErrorList {
	errs := reserved(path.Child("metadata", "labels"), t.ObjectMeta.Labels)
	return append(errs, Permitted(path, t.ObjectMeta.Annotations, &t.Spec, c)...)
}

func reserved(path *field.Path, set map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range Reserved {
		if value, has := set[key]; has {
			errs = append(errs, &field.Error{Type: field.ErrorTypeNotSupported, Field: path.Key(key).String(), BadValue: short(value),
				Detail: "is reserved for the components that place machines: must be left out"})
		}
	}
	return errs
}

// frozen checks what must stay while a machine is saved or brought back.
func frozen(vm, old *machineKind) field.ErrorList {
	if name := vm.Status.RestoreInProgress; name != nil && !wantsToRun(old) && wantsToRun(vm) {
		return field.ErrorList{{Type: field.ErrorTypeNotSupported, Field: "spec.runStrategy", BadValue: lifecycle.Strategy(vm),
			Detail: "must stay Halted until the restore " + *name + " is complete"}}
	}
	if name := vm.Status.SnapshotInProgress; name != nil {
		if lifecycle.Strategy(vm) != lifecycle.Strategy(old) {
			return field.ErrorList{{Type: field.ErrorTypeNotSupported, Field: "spec.runStrategy", BadValue: lifecycle.Strategy(vm),
				Detail: "must stay as it is until the snapshot " + *name + " is complete"}}
		}
		if t, was := vm.Spec.Template, old.Spec.Template; t != nil && was != nil && !equality.Semantic.DeepEqual(t.Spec.Volumes, was.Spec.Volumes) {
			return field.ErrorList{{Type: field.ErrorTypeNotSupported, Field: "spec.template.spec.volumes", BadValue: field.OmitValueType{},
				Detail: "must stay as they are until the snapshot " + *name + " is complete"}}
		}
	}
	return nil
}

func wantsToRun(vm *machineKind) bool { return lifecycle.Strategy(vm) != v1.RunStrategyHalted }

// instance reviews a new one, and a changed spec; who may change it is not asked here.
func instance(vmi, old *v1.VirtualMachineInstance, c config.Config) Verdict {
	if old != nil && equality.Semantic.DeepEqual(old.Spec, vmi.Spec) {
		return Verdict{}
	}
	errs := VMI(field.NewPath("spec"), &vmi.Spec)
	if old != nil {
		return Verdict{Errors: append(errs, live(vmi, old, c)...)}
	}
	v := Verdict{Warnings: silent(field.NewPath("spec"), &vmi.Spec)}
	if len(vmi.Spec.UtilityVolumes) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "utilityVolumes"), "must be left out of a new machine"))
	}
	v.Errors = append(errs, Permitted(nil, vmi.Annotations, &vmi.Spec, c)...)
	return v
}

func replicaSet(rs, old *v1.VirtualMachineInstanceReplicaSet, c config.Config) Verdict {
	if old != nil && equality.Semantic.DeepEqual(old.Spec, rs.Spec) {
		return Verdict{}
	}
	path := field.NewPath("spec")
	if rs.Spec.Template == nil {
		return Verdict{Errors: field.ErrorList{field.Required(path.Child("template"), "must hold the machine to run")}}
	}
	errs := VMI(path.Child("template", "spec"), &rs.Spec.Template.Spec)
	errs = append(errs, template(path.Child("template"), rs.Spec.Template, c)...)
	return Verdict{Errors: append(errs, selects(path.Child("selector"), rs.Spec.Selector, rs.Spec.Template.ObjectMeta.Labels)...)}
}

// selects wants a selector of what the template makes.
func selects(path *field.Path, s *metav1.LabelSelector, made map[string]string) field.ErrorList {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(path, "must select the template's labels")}
	}
	if errs := selector(path, s); len(errs) > 0 {
		return errs
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err == nil && parsed.Matches(labels.Set(made)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, short(metav1.FormatLabelSelector(s)),
		"must match the labels of the template, "+short(labels.Set(made).String()))}
}

func preset(p, _ *v1.VirtualMachineInstancePreset, _ config.Config) Verdict {
	v := Verdict{Warnings: []string{presetDeprecated}, Errors: selector(field.NewPath("spec", "selector"), &p.Spec.Selector)}
	if len(p.Spec.Selector.MatchLabels)+len(p.Spec.Selector.MatchExpressions) == 0 {
		v.Errors = append(v.Errors, field.Required(field.NewPath("spec", "selector"), "must select machines by label"))
	}
	if p.Spec.Domain == nil {
		v.Errors = append(v.Errors, field.Required(field.NewPath("spec", "domain"), "must hold what the machines get"))
	}
	return v
}

func machinePool(p, old *poolKind, c config.Config) Verdict {
	path := field.NewPath("spec")
	if old != nil && equality.Semantic.DeepEqual(old.Spec, p.Spec) {
		return Verdict{}
	}
	at := path.Child("virtualMachineTemplate")
	t := p.Spec.VirtualMachineTemplate
	if t == nil {
		return Verdict{Errors: field.ErrorList{field.Required(at, "must hold the machine to run")}}
	}
	v := Verdict{}
	for _, err := range virtualMachine(&v1.VirtualMachine{ObjectMeta: t.ObjectMeta, Spec: t.Spec}, nil, c).Errors {
		err.Field = at.String() + "." + err.Field
		v.Errors = append(v.Errors, err)
	}
	if t.Spec.Running != nil {
		v.Warnings = append(v.Warnings, runningDeprecated)
	}
	v.Errors = append(v.Errors, selects(path.Child("selector"), p.Spec.Selector, t.ObjectMeta.Labels)...)
	if old != nil && !equality.Semantic.DeepEqual(old.Spec.Selector, p.Spec.Selector) {
		v.Errors = append(v.Errors, field.Invalid(path.Child("selector"), short(metav1.FormatLabelSelector(p.Spec.Selector)),
			"must stay "+short(metav1.FormatLabelSelector(old.Spec.Selector))))
	}
	v.Errors = append(v.Errors, unavailable(path.Child("maxUnavailable"), p.Spec.MaxUnavailable)...)
	for _, strategy := range []struct {
		name  string
		given []string
	}{{"updateStrategy", given(p.Spec.UpdateStrategy)}, {"scaleInStrategy", given(p.Spec.ScaleInStrategy)}} {
		if len(strategy.given) > 1 {
			v.Errors = append(v.Errors, tooMany(path.Child(strategy.name), strategy.given)...)
		}
	}
	return v
}

// given is set for a struct that may be nil.
func given[T any](union *T) []string {
	if union == nil {
		return nil
	}
	return set(*union)
}

func unavailable(path *field.Path, n *intstr.IntOrString) field.ErrorList {
	if n == nil {
		return nil
	}
	const right = "must be a number of machines from 1, or a percentage from 1% to 100%"
	percent, err := intstr.GetScaledValueFromIntOrPercent(n, 100, true)
	textual := n.Type == intstr.String
	if err != nil || percent < 1 || textual && (percent > 100 || !strings.HasSuffix(n.StrVal, "%")) {
		return field.ErrorList{field.Invalid(path, short(n.String()), right)}
	}
	return nil
}
