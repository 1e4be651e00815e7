package podspec_test

import (
	"errors"
	"testing"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/podspec"
)

// What an annotation asks for, and a guest can't do without, is refused like a field.
func TestWhatAnAnnotationAsksForInVainIsNamed(t *testing.T) {
	for _, key := range []string{"hooks.kubevirt.io/hookSidecars", "kubevirt.io/ignitiondata"} {
		vmi := &v1.VirtualMachineInstance{}
		vmi.Name, vmi.Annotations = "web", map[string]string{key: "[]"}
		_, err := podspec.Render(vmi, emulated(), image, claims)
		var unsupported *podspec.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Field != "metadata.annotations["+key+"]" {
			t.Errorf("%s: got %v", key, err)
		}
	}
}
