package names_test

import (
	"strings"
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
		for _, value := range []string{names.LabelValue(name), names.NameLabel(vmi)} {
			if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
				t.Fatalf("%q: %v", value, errs)
			}
		}
		if d := names.Domain(strings.Repeat("n", 63), name); len(d) > 200 {
			t.Fatalf("domain %q has %d bytes, and libvirt makes file names of it", d, len(d))
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

// Names that begin alike, past what any derived name holds, stay apart. Source: kubevirt/kubevirt#1222, #16853.
func TestLongNamesThatBeginAlike(t *testing.T) {
	const long = "ledger-archive-node-of-the-northern-region-replica-of-2026-q34-second-copy-zone-"
	b, c := &v1.VirtualMachineInstance{}, &v1.VirtualMachineInstance{}
	b.Name, c.Name = long+"b", long+"c"
	rest := strings.Repeat("x", 150)
	for name, pair := range map[string][2]string{
		"label id":   {names.LabelValue(b.Name), names.LabelValue(c.Name)},
		"label name": {names.NameLabel(b), names.NameLabel(c)},
		"domain":     {names.Domain("cases", long+rest+"b"), names.Domain("cases", long+rest+"c")},
		"Pod":        {names.LauncherPod(b.Name, "one"), names.LauncherPod(c.Name, "two")},
	} {
		if pair[0] == pair[1] {
			t.Errorf("%s: both are %s", name, pair[0])
		}
	}
	if h := names.Hostname(b); h != strings.TrimRight(b.Name[:63], "-") {
		t.Errorf("host name %q", h)
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
