package bundle

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"

	"virtstack.io/virtstack/api/v1alpha1"
)

func expressions(kind, current, progress, failed string) kustomize.CustomHealthCheck {
	return kustomize.CustomHealthCheck{APIVersion: "v1", Kind: kind, HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: current, InProgress: progress, Failed: failed}}
}

// Expressions say what the health of a kind is.
func TestExpressionsSayWhatIsHealthy(t *testing.T) {
	x := start(t)
	x.repo.Commit("a.yaml", settings("a", "slow"))
	x.repo.Commit("s.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n")
	x.bundle.Spec.HealthCheckExprs = []kustomize.CustomHealthCheck{expressions("ConfigMap", "data.value == 'good'", "data.value == 'slow'", "data.value == 'bad'")}
	x.create(x.bundle)
	for range 4 {
		x.round()
	}
	b := x.round()
	status, reason, message := condition(b, "Ready")
	if status != "Unknown" || reason != "WaitingForHealth" || !strings.Contains(message, "ConfigMap "+x.namespace+"/a: in progress, by spec.healthCheckExprs[0]") {
		t.Errorf("slow: %s %s %s", status, reason, message)
	}
	hash := x.repo.Commit("a.yaml", settings("a", "bad"))
	x.failed(x.settle(), "HealthCheckFailed", hash, "ConfigMap "+x.namespace+"/a: failed, by spec.healthCheckExprs[0].failed")
	hash = x.repo.Commit("a.yaml", settings("a", "good"))
	x.now = x.now.Add(10 * time.Minute)
	x.ready(x.settle(), "main@sha1:"+hash)
	x.change(func(s *v1alpha1.BundleSpec) { s.HealthCheckExprs[0].Current = "data.nothing == 'x'" })
	x.round()
	_, _, message = condition(x.round(), "Ready")
	if !strings.Contains(message, "spec.healthCheckExprs[0]: ") || !strings.Contains(message, "no such key: nothing") {
		t.Errorf("an expression that fails: %s", message)
	}
	x.change(func(s *v1alpha1.BundleSpec) { s.HealthCheckExprs[0].Current = "data. ==" })
	x.repo.Commit("a.yaml", settings("a", "new"))
	x.failed(x.settle(), "HealthCheckInvalid", "spec.healthCheckExprs[0]: failed to parse the expression Current")
	x.holds("a", "good")
	x.change(func(s *v1alpha1.BundleSpec) {
		s.HealthCheckExprs = []kustomize.CustomHealthCheck{expressions("ConfigMap", "true", "", ""), expressions("ConfigMap", "false", "", "")}
	})
	x.failed(x.settle(), "HealthCheckInvalid", "spec.healthCheckExprs[1]: ConfigMap has expressions already")
	// What takes too long is cut off, and holds nobody up (threat G10).
	x.change(func(s *v1alpha1.BundleSpec) {
		all := "[0,1,2,3,4,5,6,7,8,9]"
		loop := "true"
		for _, v := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
			loop = all + ".all(" + v + ", " + loop + ")"
		}
		s.HealthCheckExprs = []kustomize.CustomHealthCheck{expressions("ConfigMap", loop, "", "")}
	})
	began := time.Now()
	_, _, message = condition(x.round(), "Ready")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("an expression without end took %s: %s", took, message)
	}
}

// Objects beside the Bundle's can be waited for, also where its own are not.
func TestHealthChecksOfOtherObjects(t *testing.T) {
	x := start(t)
	hash := x.repo.Commit("a.yaml", settings("a", "one"))
	x.bundle.Spec.Wait = new(bool)
	x.bundle.Spec.HealthChecks = []v1alpha1.HealthCheck{{APIVersion: "v1", Kind: "ConfigMap", Name: "other"}}
	x.create(x.bundle)
	for range 4 {
		x.round()
	}
	if _, reason, message := condition(x.round(), "Ready"); reason != "WaitingForHealth" || !strings.Contains(message, "ConfigMap "+x.namespace+"/other: it does not exist") {
		t.Errorf("got %s %s", reason, message)
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = x.namespace, "other"
	x.create(m)
	x.ready(x.settle(), "main@sha1:"+hash)
}
