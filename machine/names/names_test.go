package names_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	v1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/machine/names"
)

func TestDerivedNamesAreValidWhateverTheVMIIsCalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?`).Filter(func(s string) bool {
			return len(validation.IsDNS1123Subdomain(s)) == 0
		}).Draw(t, "name")
		uid := types.UID(rapid.String().Draw(t, "uid"))
		vmi := &v1.VirtualMachineInstance{}
		vmi.Name = name
		for _, label := range []string{names.LauncherPod(name, uid), names.Hostname(vmi), names.PodVolume("image", name)} {
			if errs := validation.IsDNS1123Label(label); len(errs) > 0 {
				t.Fatalf("%q: %v", label, errs)
			}
		}
		if errs := validation.IsValidLabelValue(names.LabelValue(name)); len(errs) > 0 {
			t.Fatalf("%q: %v", names.LabelValue(name), errs)
		}
	})
}

func TestNamesakesGetOtherPods(t *testing.T) {
	if a, b := names.LauncherPod("web", "one"), names.LauncherPod("web", "two"); a == b {
		t.Errorf("both are %s", a)
	}
	if a, b := names.PodVolume("image", "a.b"), names.PodVolume("image", "a-b"); a == b {
		t.Errorf("both volumes are %s", a)
	}
}

func TestTrackingKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"app.kubernetes.io/instance":                       true,
		"argocd.argoproj.io/tracking-id":                   true,
		"kustomize.toolkit.fluxcd.io/name":                 true,
		"helm.toolkit.fluxcd.io/name":                      true,
		"kubectl.kubernetes.io/last-applied-configuration": true,
		"app.kubernetes.io/name":                           false,
		"team":                                             false,
	} {
		if got := names.Tracking(key); got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
}
