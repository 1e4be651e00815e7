package mirror_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/machine/mirror"
)

func TestOnlyWhatIsOursGoes(t *testing.T) {
	green, x := "green", "x"
	got := mirror.Diff(
		map[string]string{"color": "blue", "shape": "round", "cni": "set", "kubevirt.io/nodeName": "node-1"},
		map[string]string{"color": "green", "team": "x", "vmi.kubevirt.io/id": "web"},
		[]string{"color", "shape", "kubevirt.io/nodeName", "gone"},
	)
	want := mirror.Change{"color": &green, "team": &x, "shape": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestADiffThatWasMadeLeavesNone(t *testing.T) {
	labels := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "kubevirt.io/d"}), rapid.SampledFrom([]string{"1", "2"}))
	rapid.Check(t, func(t *rapid.T) {
		have, want := labels.Draw(t, "have"), labels.Draw(t, "want")
		ours := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c"})).Draw(t, "ours")
		for k, v := range mirror.Diff(have, want, ours) {
			if v == nil {
				delete(have, k)
				continue
			}
			have[k] = *v
		}
		if again := mirror.Diff(have, want, ours); len(again) != 0 {
			t.Fatalf("still %v", again)
		}
	})
}
