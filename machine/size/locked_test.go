package size_test

import (
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/size"
)

func TestWhatMayBeLocked(t *testing.T) {
	const gib = int64(1) << 30
	for spec, guests := range map[string]int64{
		`{memory: {guest: 1Gi}}`: 0,
		`{memory: {guest: 1Gi, reservedOverhead: {memLock: NotRequired}}}`:                                  0,
		`{memory: {guest: 1Gi, reservedOverhead: {memLock: Required}}}`:                                     1,
		`{memory: {guest: 1Gi}, devices: {hostDevices: [{name: a, deviceName: x/y}]}}`:                      1,
		`{memory: {guest: 1Gi, maxGuest: 4Gi}, devices: {gpus: [{name: a, deviceName: x/y}]}}`:              4,
		`{memory: {guest: 1Gi}, devices: {gpus: [{name: a}, {name: b}], hostDevices: [{name: c}]}}`:         3,
		`{memory: {guest: 1Gi}, resources: {requests: {memory: 2Gi}}, devices: {hostDevices: [{name: a}]}}`: 2,
		`{memory: {guest: 1Gi}, cpu: {realtime: {}}}`:                                                       1,
		`{memory: {guest: 1Gi}, launchSecurity: {sev: {}}}`:                                                 1,
		`{memory: {guest: 1Gi, reservedOverhead: {memLock: Required, addedOverhead: 3Gi}}}`:                 1,
	} {
		vmi := &v1.VirtualMachineInstance{}
		if err := yaml.Unmarshal([]byte("{spec: {domain: "+spec+"}}"), vmi); err != nil {
			t.Fatal(err)
		}
		want := int64(0)
		if guests > 0 {
			overhead := size.Overhead(vmi, config.From(nil))
			want = overhead.Value() + guests*gib
		}
		if got := size.Locked(vmi, config.From(nil)); got != want {
			t.Errorf("%s: got %d, want %d", spec, got, want)
		}
	}
}

// What the author of a machine knows of its devices is added to what we know.
func TestOverheadThatIsAskedFor(t *testing.T) {
	vmi := &v1.VirtualMachineInstance{}
	plain := size.Overhead(vmi, config.From(nil))
	if err := yaml.Unmarshal([]byte("{spec: {domain: {memory: {reservedOverhead: {addedOverhead: 3Gi}}}}}"), vmi); err != nil {
		t.Fatal(err)
	}
	if more := size.Overhead(vmi, config.From(nil)); more.Value()-plain.Value() != 3<<30 {
		t.Errorf("got %s beside %s", more.String(), plain.String())
	}
}
