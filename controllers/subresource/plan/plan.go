// Package plan decides what start, stop and restart do, and whether a guest can be paused: functions from the VM and its
// VMI to the writes that follow, or to the refusal that the caller gets.
package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/override"
)

// Seen is what a verb is decided on.
type Seen struct {
	VM  *v1.VirtualMachine
	VMI *v1.VirtualMachineInstance // the VM's; nil: none
	// Namesake says that there is a VMI of the VM's name that isn't the VM's: no verb of the VM reaches it.
	Namesake bool
	Now      time.Time
	// GitManagers are field managers that count as Git tools, beside the known.
	GitManagers []string
	// OverrideIsOurs says that virt-api wrote the override that the VM carries.
	OverrideIsOurs bool
	// Asked is what the caller wants to hold in place of a run strategy that comes from Git; nil: nothing.
	Asked *override.Override
}

// Look sorts what there is of a VM's name: a VMI is the VM's only by the UID of its controller. named is nil if there is
// none.
func Look(vm *v1.VirtualMachine, named *v1.VirtualMachineInstance) Seen {
	if named == nil || metav1.IsControlledBy(named, vm) {
		return Seen{VM: vm, VMI: named}
	}
	return Seen{VM: vm, Namesake: true}
}

// Action is one write; the first that fails ends the list.
type Action interface{ String() string }

// SetStrategy writes the run strategy into the spec, in whichever of its two fields the VM uses. It is never planned
// where a Git tool owns that field.
type SetStrategy struct {
	VM  *v1.VirtualMachine
	Run bool
}

func (a SetStrategy) String() string { return "setting " + strategyLine(a.VM, a.Run) }

// Patch returns a JSON merge patch that holds only for the VM as it was seen.
func (a SetStrategy) Patch() []byte {
	spec := map[string]any{"runStrategy": override.Strategy(a.Run)}
	if a.VM.Spec.Running != nil {
		spec = map[string]any{"running": a.Run}
	}
	return encode(map[string]any{
		"metadata": map[string]any{"uid": a.VM.UID, "resourceVersion": a.VM.ResourceVersion},
		"spec":     spec,
	})
}

// Request leaves requests for the VM controller in the status, which no Git tool owns. A start also ends the pause
// between tries after failures.
type Request struct {
	VM      *v1.VirtualMachine
	Changes []v1.VirtualMachineStateChangeRequest
}

func (a Request) String() string {
	verbs := ""
	for _, c := range a.Changes {
		verbs += " " + string(c.Action)
		if lifecycle.PausedAtFirst(c) {
			verbs += " paused"
		}
	}
	return "requesting" + verbs
}

// Patch returns a JSON patch that holds only while the requests are those that were seen.
func (a Request) Patch() []byte {
	status := a.VM.Status
	if reflect.DeepEqual(status, v1.VirtualMachineStatus{}) {
		return encode([]operation{
			{"test", "/metadata/resourceVersion", a.VM.ResourceVersion},
			{"add", "/status", map[string]any{"stateChangeRequests": a.Changes}},
		})
	}
	ops := append([]operation{{"test", "/metadata/uid", a.VM.UID}}, replace(status.StateChangeRequests, a.Changes)...)
	if status.StartFailure != nil && asks(a.Changes, v1.StartRequest) {
		ops = append(ops, operation{"remove", "/status/startFailure", nil})
	}
	return encode(ops)
}

// Undo returns a JSON patch that puts back the requests that were seen, unless the VM controller or another verb has
// seen to it.
func (a Request) Undo() []byte {
	return encode(append([]operation{{"test", "/metadata/uid", a.VM.UID}}, replace(a.Changes, a.VM.Status.StateChangeRequests)...))
}

// replace are the operations that bring about these requests where those are.
func replace(those, these []v1.VirtualMachineStateChangeRequest) []operation {
	const path = "/status/stateChangeRequests"
	test := operation{"test", path, pending(those)}
	switch {
	case len(these) > 0:
		return []operation{test, {"add", path, these}}
	case len(those) > 0:
		return []operation{test, {"remove", path, nil}}
	}
	return []operation{test}
}

// RetryNow ends the pause between tries of a VM that fails to start.
type RetryNow struct{ VM *v1.VirtualMachine }

func (a RetryNow) String() string { return "ending the pause between tries" }

// Patch returns a JSON patch that holds only for the failure that was seen.
func (a RetryNow) Patch() []byte {
	return encode([]operation{
		{"test", "/metadata/uid", a.VM.UID},
		{"test", "/status/startFailure", a.VM.Status.StartFailure},
		{"remove", "/status/startFailure", nil},
	})
}

// SetGrace changes how long the guest of a VMI may take to shut down, in seconds.
type SetGrace struct {
	VMI     *v1.VirtualMachineInstance
	Seconds int64
}

func (a SetGrace) String() string { return fmt.Sprintf("setting the grace period to %d s", a.Seconds) }

// Patch returns a JSON patch that holds only for the grace period that was seen.
func (a SetGrace) Patch() []byte {
	const path = "/spec/terminationGracePeriodSeconds"
	var seen any
	if g := a.VMI.Spec.TerminationGracePeriodSeconds; g != nil {
		seen = *g
	}
	return encode([]operation{
		{"test", "/metadata/uid", a.VMI.UID},
		{"test", path, seen},
		{"add", path, a.Seconds},
	})
}

// KillLauncher deletes the launcher Pod of a VMI without waiting for its guest.
type KillLauncher struct{ VMI *v1.VirtualMachineInstance }

func (a KillLauncher) String() string { return "killing the launcher of VMI " + a.VMI.Name }

// operation is one of RFC 6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps, strings and API types only
	}
	return b
}

// pending is nil, not an empty list, where there is no request: a test of an absent field wants null.
func pending(requests []v1.VirtualMachineStateChangeRequest) any {
	if len(requests) == 0 {
		return nil
	}
	return requests
}

func asks(changes []v1.VirtualMachineStateChangeRequest, action v1.StateChangeRequestAction) bool {
	for _, c := range changes {
		if c.Action == action {
			return true
		}
	}
	return false
}

// request plans the changes unless others wait: those that are met, though the VM controller has yet to take them away,
// don't. A stop alone takes the place of whatever waits.
func request(s Seen, changes ...v1.VirtualMachineStateChangeRequest) ([]Action, error) {
	onlyStop := len(changes) == 1 && changes[0].Action == v1.StopRequest
	waiting := len(s.VM.Status.StateChangeRequests) > 0 && len(lifecycle.Requests(s.Now, s.VM, s.VMI)) > 0
	if waiting && !onlyStop {
		return nil, apierrors.NewInternalError(errors.New("unable to complete request: stop/start already underway"))
	}
	return []Action{Request{s.VM, changes}}, nil
}

func startRequest() v1.VirtualMachineStateChangeRequest {
	return v1.VirtualMachineStateChangeRequest{Action: v1.StartRequest}
}

// startAs is a start of a guest that waits at its first instruction, if it is to.
func startAs(o v1.StartOptions) v1.VirtualMachineStateChangeRequest {
	r := startRequest()
	if o.Paused {
		r.Data = map[string]string{v1.StartRequestDataPausedKey: v1.StartRequestDataPausedTrue}
	}
	return r
}

// stopRequest asks for the end of that VMI and no later one; without a VMI it asks that none be tried.
func stopRequest(vmi *v1.VirtualMachineInstance) v1.VirtualMachineStateChangeRequest {
	r := v1.VirtualMachineStateChangeRequest{Action: v1.StopRequest}
	if vmi != nil {
		uid := vmi.UID
		r.UID = &uid
	}
	return r
}

// strategyLine is the line of the VM's manifest that says run.
func strategyLine(vm *v1.VirtualMachine, run bool) string {
	if vm.Spec.Running != nil {
		return fmt.Sprintf("running: %t", run)
	}
	return "runStrategy: " + string(override.Strategy(run))
}

// Conflict is the refusal of a VM verb with HTTP status 409.
func Conflict(vm *v1.VirtualMachine, format string, args ...any) error {
	return apierrors.NewConflict(v1.Resource("virtualmachine"), vm.Name, fmt.Errorf(format, args...))
}

func strategyOf(vm *v1.VirtualMachine) (v1.VirtualMachineRunStrategy, error) {
	s, err := vm.RunStrategy()
	if err != nil {
		return s, apierrors.NewInternalError(err)
	}
	return s, nil
}
