package validate

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
)

// components checks where an administrator wants components to run: what is wrong there would keep them from running at all.
func components(path *field.Path, c *v1.ComponentConfig) field.ErrorList {
	if c == nil || c.NodePlacement == nil {
		return nil
	}
	p := c.NodePlacement
	errs := ordered(metav1validation.ValidateLabels(p.NodeSelector, path.Child("nodeSelector")))
	return append(errs, placement(path, &v1.VirtualMachineInstanceSpec{Affinity: p.Affinity, Tolerations: p.Tolerations})...)
}

// needGates refuses what a KubeVirt asks for without the feature gate for it.
func needGates(path *field.Path, kv *v1.KubeVirt) field.ErrorList {
	var errs field.ErrorList
	k, gates := &kv.Spec.Configuration, config.From(kv)
	want := func(at *field.Path, gate string) {
		if !gates.Enabled(gate) {
			errs = append(errs, field.Forbidden(at, "needs the feature gate "+gate+": add it to developerConfiguration.featureGates, or remove this"))
		}
	}
	if t := k.VirtTemplateDeployment; t != nil && (t.Enabled == nil || *t.Enabled) {
		want(path.Child("virtTemplateDeployment"), "Template")
	}
	if r := k.RoleAggregationStrategy; r != nil && *r == v1.RoleAggregationStrategyManual {
		want(path.Child("roleAggregationStrategy"), "OptOutRoleAggregation")
	}
	return errs
}
