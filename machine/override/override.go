// Package override reads and writes a user's time-boxed word that a VM whose run strategy comes from Git is to run, or is
// not to, meanwhile. It is an annotation, so the spec stays as Git has it.
package override

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/names"
)

const (
	// Shortest and Longest bound how long an override lasts that virt-api writes: a week is enough to get a commit reviewed.
	Shortest = time.Second
	Longest  = 7 * 24 * time.Hour
	// MaxReason is how many characters a reason may have there.
	MaxReason = 512
)

// Override is the word.
type Override struct {
	// Run is what holds in place of the run strategy: Always or Halted.
	Run bool `json:"run"`
	// Until is when it ends, to the second.
	Until time.Time `json:"until"`
	// Reason is the user's, By the user's name.
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"`
}

// Of returns the override that a VM carries, whether it is over or not; nil: none. An error names the annotation and what
// would be right.
func Of(vm *v1.VirtualMachine) (*Override, error) {
	text, ok := vm.Annotations[names.RunOverride]
	if !ok {
		return nil, nil
	}
	o := &Override{}
	if err := json.Unmarshal([]byte(text), o); err != nil || o.Until.IsZero() {
		return nil, fmt.Errorf(`metadata.annotations[%s]: Invalid value: %.100q: must be like {"run":false,"until":"2026-01-02T15:04:05Z","reason":"why"}`,
			names.RunOverride, text)
	}
	return o, nil
}

// Active returns the override that holds for a VM now; nil: none does. Only Always and Halted can be overridden: a VM of
// another run strategy is started and stopped without a word in its spec.
func Active(now time.Time, vm *v1.VirtualMachine) *Override {
	o, err := Of(vm)
	if err != nil || o == nil || !now.Before(o.Until) || !Overridable(vm) {
		return nil
	}
	return o
}

// Overridable tells whether the spec of a VM says plainly that it is to run, or that it isn't.
func Overridable(vm *v1.VirtualMachine) bool {
	s := lifecycle.Strategy(vm)
	return s == v1.RunStrategyAlways || s == v1.RunStrategyHalted
}

// Effective returns the VM as it is to be treated now: vm itself, or a copy whose spec says what the override does. What
// is in the copy beside is shared with vm.
func Effective(now time.Time, vm *v1.VirtualMachine) *v1.VirtualMachine {
	o := Active(now, vm)
	if o == nil {
		return vm
	}
	out := *vm
	if vm.Spec.Running != nil {
		out.Spec.Running = &o.Run
	} else {
		out.Spec.RunStrategy = new(Strategy(o.Run))
	}
	return &out
}

// Strategy is the run strategy of a VM that is to run, or isn't.
func Strategy(run bool) v1.VirtualMachineRunStrategy {
	if run {
		return v1.RunStrategyAlways
	}
	return v1.RunStrategyHalted
}

// Annotation is what the VM carries.
func (o Override) Annotation() string {
	o.Until = o.Until.UTC().Truncate(time.Second)
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and a time
	}
	return string(b)
}

// String says what holds, until when and why.
func (o Override) String() string {
	by := ""
	if o.By != "" {
		by = " by " + o.By
	}
	return fmt.Sprintf("%s until %s%s: %s", Strategy(o.Run), o.Until.UTC().Format(time.RFC3339), by, o.Reason)
}
