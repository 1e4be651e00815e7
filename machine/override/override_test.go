package override

import (
	"strings"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/names"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func vm(s v1.VirtualMachineRunStrategy, annotation string) *v1.VirtualMachine {
	vm := &v1.VirtualMachine{}
	vm.Spec.RunStrategy = &s
	if annotation != "" {
		vm.Annotations = map[string]string{names.RunOverride: annotation}
	}
	return vm
}

func TestAnOverrideHoldsUntilItsTime(t *testing.T) {
	stop := Override{Until: now.Add(time.Hour), Reason: "disk check", By: "ops"}.Annotation()
	over := Override{Until: now, Reason: "disk check"}.Annotation()
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		want v1.VirtualMachineRunStrategy
	}{
		"none":                     {vm(v1.RunStrategyAlways, ""), v1.RunStrategyAlways},
		"active":                   {vm(v1.RunStrategyAlways, stop), v1.RunStrategyHalted},
		"as the spec":              {vm(v1.RunStrategyHalted, stop), v1.RunStrategyHalted},
		"over":                     {vm(v1.RunStrategyAlways, over), v1.RunStrategyAlways},
		"no JSON":                  {vm(v1.RunStrategyAlways, "Halted"), v1.RunStrategyAlways},
		"without an end":           {vm(v1.RunStrategyAlways, `{"run":false}`), v1.RunStrategyAlways},
		"strategy of its requests": {vm(v1.RunStrategyManual, stop), v1.RunStrategyManual},
	} {
		if got := lifecycle.Strategy(Effective(now, tc.vm)); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestTheFieldThatIsUsedIsOverridden(t *testing.T) {
	running := vm("", Override{Run: true, Until: now.Add(time.Hour), Reason: "x"}.Annotation())
	running.Spec.RunStrategy, running.Spec.Running = nil, new(false)
	got := Effective(now, running)
	if got.Spec.RunStrategy != nil || !*got.Spec.Running || *running.Spec.Running {
		t.Errorf("got %v and %v; the original says %v", got.Spec.RunStrategy, *got.Spec.Running, *running.Spec.Running)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := Override{Run: true, Until: now.Add(90 * time.Minute), Reason: `a "quoted" reason`, By: "ops"}
	got, err := Of(vm(v1.RunStrategyHalted, want.Annotation()))
	if err != nil || *got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if s := got.String(); s != `Always until 2026-05-01T13:30:00Z by ops: a "quoted" reason` {
		t.Errorf("got %q", s)
	}
}

func TestAnUnreadableOneIsNamed(t *testing.T) {
	_, err := Of(vm(v1.RunStrategyAlways, "Halted"))
	if err == nil || !strings.HasPrefix(err.Error(), `metadata.annotations[virtstack.io/run-override]: Invalid value: "Halted": must be like`) {
		t.Errorf("got %v", err)
	}
}
