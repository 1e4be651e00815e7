package bundle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"virtstack.io/virtstack/api/v1alpha1"
)

func needing(names ...string) func(*v1alpha1.BundleSpec) {
	return func(s *v1alpha1.BundleSpec) {
		s.DependsOn = nil
		for _, n := range names {
			s.DependsOn = append(s.DependsOn, v1alpha1.LocalObjectReference{Name: n})
		}
	}
}

// A Bundle waits until what it depends on is ready at its newest generation, and says what it waits for.
func TestDependenciesComeFirst(t *testing.T) {
	x := start(t)
	y := x.beside("second")
	x.repo.Commit("a.yaml", "kind: x\n")
	hash := y.repo.Commit("b.yaml", settings("b", "one"))
	needing("apps")(&y.bundle.Spec)
	y.create(y.bundle)
	y.failed(y.settle(), "DependencyNotReady", "spec.dependsOn[0]", "Bundle apps", "does not exist")
	x.create(x.bundle)
	y.failed(y.settle(), "DependencyNotReady", "Bundle apps", "not been looked at")
	x.settle()
	y.failed(y.settle(), "DependencyNotReady", "Bundle apps", "Ready is False, BuildFailed")
	if y.exists(&corev1.ConfigMap{}, "b") {
		t.Fatal("applied before its dependency")
	}
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.settle()
	y.now = y.now.Add(time.Minute)
	y.ready(y.settle(), "main@sha1:"+hash)
	x.change(func(s *v1alpha1.BundleSpec) { s.Path = "nowhere" })
	y.failed(y.settle(), "DependencyNotReady", "not been looked at")
}

// Bundles that wait for each other, or for themselves, are refused and name the circle; the way out is open.
func TestDependencyCyclesAreRefused(t *testing.T) {
	x := start(t)
	y := x.beside("second")
	hash := x.repo.Commit("a.yaml", settings("a", "one"))
	y.repo.Commit("b.yaml", settings("b", "one"))
	needing("second")(&x.bundle.Spec)
	needing("apps")(&y.bundle.Spec)
	x.create(x.bundle)
	y.create(y.bundle)
	x.failed(x.settle(), "DependencyCycle", "apps -> second -> apps")
	y.failed(y.settle(), "DependencyCycle", "second -> apps -> second")
	x.change(needing("apps"))
	x.failed(x.settle(), "DependencyCycle", "apps -> apps")
	x.change(needing())
	x.ready(x.settle(), "main@sha1:"+hash)
}
