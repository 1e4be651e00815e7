package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
)

// Depends returns what of its dependencies keeps a Bundle from being applied; nil: nothing. All are the Bundles of its
// namespace.
func Depends(b *v1alpha1.Bundle, all []v1alpha1.Bundle) *Failure {
	named := map[string]*v1alpha1.Bundle{}
	for i := range all {
		named[all[i].Name] = &all[i]
	}
	named[b.Name] = b
	if way := cycle(named, b, b.Name, map[string]bool{}); way != nil {
		return &Failure{Reason: DependencyCycle, Final: true, Message: "spec.dependsOn: Bundles wait for each other: " + strings.Join(way, " -> ") + ": take one of these out"}
	}
	for i, d := range b.Spec.DependsOn {
		if why := Unready(named[d.Name]); why != "" {
			return &Failure{Reason: DependencyNotReady, Message: fmt.Sprintf("spec.dependsOn[%d]: waiting for Bundle %s: %s", i, d.Name, why)}
		}
	}
	return nil
}

// Unready says why a Bundle can't be depended on; "" if it can.
func Unready(b *v1alpha1.Bundle) string {
	if b == nil {
		return "it does not exist"
	}
	c := find(b, "Ready")
	switch {
	case c == nil, c.ObservedGeneration != b.Generation:
		return "its newest spec has not been looked at"
	case c.Status != metav1.ConditionTrue:
		return "its condition Ready is " + string(c.Status) + ", " + c.Reason
	}
	return ""
}

// cycle returns a way from one Bundle to the one called to, nil if there is none.
func cycle(named map[string]*v1alpha1.Bundle, from *v1alpha1.Bundle, to string, seen map[string]bool) []string {
	if from == nil || seen[from.Name] {
		return nil
	}
	seen[from.Name] = true
	for _, d := range from.Spec.DependsOn {
		if d.Name == to {
			return []string{from.Name, to}
		}
		if way := cycle(named, named[d.Name], to, seen); way != nil {
			return append([]string{from.Name}, way...)
		}
	}
	return nil
}
