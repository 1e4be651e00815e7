package plan

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

type vmOption func(*v1.VirtualMachine)

func vm(strategy v1.VirtualMachineRunStrategy, options ...vmOption) *v1.VirtualMachine {
	vm := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "vm-1", ResourceVersion: "7"}}
	vm.Status.ObservedGeneration = 1
	if strategy != "" {
		vm.Spec.RunStrategy = &strategy
	}
	for _, o := range options {
		o(vm)
	}
	return vm
}

func failing(vm *v1.VirtualMachine) {
	vm.Status.StartFailure = &v1.VirtualMachineStartFailure{ConsecutiveFailCount: 3}
}

func with(condition v1.VirtualMachineConditionType) vmOption {
	return func(vm *v1.VirtualMachine) {
		vm.Status.Conditions = append(vm.Status.Conditions, v1.VirtualMachineCondition{Type: condition, Status: k8sv1.ConditionTrue})
	}
}

func waiting(actions ...v1.StateChangeRequestAction) vmOption {
	return func(vm *v1.VirtualMachine) {
		for _, a := range actions {
			vm.Status.StateChangeRequests = append(vm.Status.StateChangeRequests, v1.VirtualMachineStateChangeRequest{Action: a})
		}
	}
}

// ofThisVMI has the first request ask for the end of the VMI that there is.
func ofThisVMI(vm *v1.VirtualMachine) {
	uid := vmi(v1.Running).UID
	vm.Status.StateChangeRequests[0].UID = &uid
}

func running(on bool) vmOption {
	return func(vm *v1.VirtualMachine) { vm.Spec.Running = &on }
}

func vmi(phase v1.VirtualMachineInstancePhase) *v1.VirtualMachineInstance {
	vmi := strangers(phase)
	yes := true
	vmi.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "web", UID: "vm-1", Controller: &yes}}
	return vmi
}

// strangers is a VMI of the VM's name that somebody made.
func strangers(phase v1.VirtualMachineInstancePhase) *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "vmi-1"}}
	vmi.Status.Phase = phase
	return vmi
}

func seconds(s int64) *int64 { return &s }

// outcome is a plan or a refusal as one line.
func outcome(actions []Action, err error) string {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		return strings.ReplaceAll(http.StatusText(int(api.Status().Code))+": "+api.Status().Message,
			`Operation cannot be fulfilled on virtualmachine.kubevirt.io "web": `, "")
	}
	if err != nil {
		return "bare error: " + err.Error()
	}
	var lines []string
	for _, a := range actions {
		lines = append(lines, a.String())
	}
	return strings.Join(lines, ", ")
}

func TestStart(t *testing.T) {
	paused := v1.StartOptions{Paused: true}
	const already, unmanual = "Conflict: VM is already running", " does not support manual start requests"
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		vmi  *v1.VirtualMachineInstance
		opts v1.StartOptions
		want string
	}{
		"halted":                    {vm: vm(v1.RunStrategyHalted), want: "setting runStrategy: Always"},
		"running false":             {vm: vm("", running(false)), want: "setting running: true"},
		"halted, last VMI is done":  {vm: vm(v1.RunStrategyHalted), vmi: vmi(v1.Succeeded), want: "setting runStrategy: Always"},
		"halted, paused":            {vm: vm(v1.RunStrategyHalted), opts: paused, want: "setting runStrategy: Always, paused at first"},
		"running false, paused":     {vm: vm("", running(false)), opts: paused, want: "setting running: true, paused at first"},
		"halted, one was cut off":   {vm: vm(v1.RunStrategyHalted, waiting(v1.StartRequest)), opts: paused, want: "setting runStrategy: Always, paused at first"},
		"manual, paused":            {vm: vm(v1.RunStrategyManual), opts: paused, want: "requesting Start paused"},
		"manual, done, paused":      {vm: vm(v1.RunStrategyManual), vmi: vmi(v1.Failed), opts: paused, want: "requesting Stop Start paused"},
		"rerun, paused":             {vm: vm(v1.RunStrategyRerunOnFailure), opts: paused, want: "requesting Start paused"},
		"always, paused":            {vm: vm(v1.RunStrategyAlways), opts: paused, want: "Conflict: Always" + unmanual},
		"a stranger has its name":   {vm: vm(v1.RunStrategyHalted), vmi: strangers(v1.Running), want: "Conflict: a VMI of this name exists and isn't this VM's: delete VMI web, then start the VM"},
		"running":                   {vm: vm(v1.RunStrategyManual), vmi: vmi(v1.Running), want: already},
		"on its way":                {vm: vm(v1.RunStrategyAlways), vmi: vmi(v1.Pending), want: already},
		"VMI without phase":         {vm: vm(v1.RunStrategyManual), vmi: vmi(v1.VmPhaseUnset), want: "requesting Start"},
		"always":                    {vm: vm(v1.RunStrategyAlways), want: "Conflict: Always" + unmanual},
		"always, in a crash loop":   {vm: vm(v1.RunStrategyAlways, failing), vmi: vmi(v1.Failed), want: "ending the pause between tries"},
		"once":                      {vm: vm(v1.RunStrategyOnce), vmi: vmi(v1.Succeeded), want: "Conflict: Once" + unmanual},
		"manual":                    {vm: vm(v1.RunStrategyManual), want: "requesting Start"},
		"manual, done":              {vm: vm(v1.RunStrategyManual), vmi: vmi(v1.Failed), want: "requesting Stop Start"},
		"rerun":                     {vm: vm(v1.RunStrategyRerunOnFailure), want: "requesting Start"},
		"rerun, done":               {vm: vm(v1.RunStrategyRerunOnFailure), vmi: vmi(v1.Succeeded), want: "requesting Stop Start"},
		"rerun, failed":             {vm: vm(v1.RunStrategyRerunOnFailure), vmi: vmi(v1.Failed), want: "Conflict: RerunOnFailure does not support starting VM from failed state"},
		"rerun, in a crash loop":    {vm: vm(v1.RunStrategyRerunOnFailure, failing), vmi: vmi(v1.Failed), want: "ending the pause between tries"},
		"rerun, between tries":      {vm: vm(v1.RunStrategyRerunOnFailure, failing, waiting(v1.StartRequest)), want: "ending the pause between tries"},
		"manual, between tries":     {vm: vm(v1.RunStrategyManual, failing, waiting(v1.StartRequest)), want: "ending the pause between tries"},
		"receiver":                  {vm: vm(v1.RunStrategyWaitAsReceiver), want: ""},
		"a stop that is met":        {vm: vm(v1.RunStrategyManual, waiting(v1.StopRequest)), want: "requesting Start"},
		"a request waits":           {vm: vm(v1.RunStrategyManual, waiting(v1.StartRequest)), want: "Internal Server Error: Internal error occurred: unable to complete request: stop/start already underway"},
		"both fields":               {vm: vm(v1.RunStrategyManual, running(true)), want: "Internal Server Error: Internal error occurred: running and runstrategy are mutually exclusive"},
		"unknown strategy":          {vm: vm("Sometimes"), want: `Internal Server Error: Internal error occurred: spec.runStrategy: Unsupported value: "Sometimes"`},
		"manual recovery is needed": {vm: vm(v1.RunStrategyHalted, with(v1.VirtualMachineManualRecoveryRequired)), want: "Conflict: VM needs manual recovery after a failed volume migration: put the volumes of spec.template back to those that hold the data, then start it"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(Start(Look(tc.vm, tc.vmi), tc.opts)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestStop(t *testing.T) {
	const down = "Conflict: VM is not running"
	quick := v1.StopOptions{GracePeriod: seconds(5)}
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		vmi  *v1.VirtualMachineInstance
		opts v1.StopOptions
		want string
	}{
		"always":                    {vm: vm(v1.RunStrategyAlways), vmi: vmi(v1.Running), want: "setting runStrategy: Halted"},
		"running true":              {vm: vm("", running(true)), vmi: vmi(v1.Running), want: "setting running: false"},
		"always, no VMI":            {vm: vm(v1.RunStrategyAlways), want: "setting runStrategy: Halted"},
		"always, quickly":           {vm: vm(v1.RunStrategyAlways), vmi: vmi(v1.Running), opts: quick, want: "setting the grace period to 5 s, setting runStrategy: Halted"},
		"always, quickly, no VMI":   {vm: vm(v1.RunStrategyAlways), opts: quick, want: "setting runStrategy: Halted"},
		"halted":                    {vm: vm(v1.RunStrategyHalted), want: down},
		"halted, done":              {vm: vm(v1.RunStrategyHalted), vmi: vmi(v1.Failed), want: down},
		"shutting down":             {vm: vm(v1.RunStrategyHalted), vmi: vmi(v1.Running), want: "Conflict: Halted only supports manual stop requests with a shorter graceperiod"},
		"shutting down, no quicker": {vm: vm(v1.RunStrategyHalted), vmi: vmi(v1.Running), opts: v1.StopOptions{GracePeriod: seconds(30)}, want: "Conflict: Halted only supports manual stop requests with a shorter graceperiod"},
		"shutting down, quickly":    {vm: vm(v1.RunStrategyHalted), vmi: vmi(v1.Running), opts: quick, want: "setting the grace period to 5 s, requesting Stop"},
		"manual":                    {vm: vm(v1.RunStrategyManual), vmi: vmi(v1.Running), want: "requesting Stop"},
		"manual, no VMI":            {vm: vm(v1.RunStrategyManual), want: down},
		"manual, done":              {vm: vm(v1.RunStrategyManual), vmi: vmi(v1.Failed), want: down},
		"once":                      {vm: vm(v1.RunStrategyOnce), vmi: vmi(v1.Running), want: "requesting Stop"},
		"once, done":                {vm: vm(v1.RunStrategyOnce), vmi: vmi(v1.Succeeded), want: down},
		"rerun":                     {vm: vm(v1.RunStrategyRerunOnFailure), vmi: vmi(v1.Scheduling), want: "requesting Stop"},
		"rerun, off":                {vm: vm(v1.RunStrategyRerunOnFailure), want: down},
		"rerun, failed":             {vm: vm(v1.RunStrategyRerunOnFailure), vmi: vmi(v1.Failed), want: "requesting Stop"},
		"rerun, between tries":      {vm: vm(v1.RunStrategyRerunOnFailure, failing), want: "requesting Stop"},
		"a start waits":             {vm: vm(v1.RunStrategyManual, waiting(v1.StartRequest)), vmi: vmi(v1.Running), want: "requesting Stop"},
		"receiver":                  {vm: vm(v1.RunStrategyWaitAsReceiver), vmi: vmi(v1.WaitingForSync), want: "requesting Stop"},
		"a stranger has its name":   {vm: vm(v1.RunStrategyManual), vmi: strangers(v1.Running), opts: quick, want: down},
		"always, beside a stranger": {vm: vm(v1.RunStrategyAlways), vmi: strangers(v1.Running), opts: quick, want: "setting runStrategy: Halted"},
		"negative":                  {vm: vm(v1.RunStrategyAlways), opts: v1.StopOptions{GracePeriod: seconds(-1)}, want: "Bad Request: gracePeriod has to be greater or equal to 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(Stop(Look(tc.vm, tc.vmi), tc.opts)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	now := v1.RestartOptions{GracePeriodSeconds: seconds(0)}
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		vmi  *v1.VirtualMachineInstance
		opts v1.RestartOptions
		want string
	}{
		"always":              {vm: vm(v1.RunStrategyAlways), vmi: vmi(v1.Running), want: "requesting Stop Start"},
		"manual, now":         {vm: vm(v1.RunStrategyManual), vmi: vmi(v1.Running), opts: now, want: "requesting Stop Start, killing the launcher of VMI web"},
		"rerun, done, now":    {vm: vm(v1.RunStrategyRerunOnFailure), vmi: vmi(v1.Succeeded), opts: now, want: "requesting Stop Start"},
		"halted":              {vm: vm(v1.RunStrategyHalted), vmi: vmi(v1.Running), want: "Conflict: RunStategy Halted does not support manual restart requests"},
		"once":                {vm: vm(v1.RunStrategyOnce), vmi: vmi(v1.Running), want: "Conflict: RunStategy Once does not support manual restart requests"},
		"no VMI":              {vm: vm(v1.RunStrategyAlways), want: "Conflict: VM is not running: Halted"},
		"a request waits":     {vm: vm(v1.RunStrategyAlways, waiting(v1.StopRequest, v1.StartRequest), ofThisVMI), vmi: vmi(v1.Running), want: "Internal Server Error: Internal error occurred: unable to complete request: stop/start already underway"},
		"beside a stranger":   {vm: vm(v1.RunStrategyAlways), vmi: strangers(v1.Running), opts: now, want: "Conflict: VM is not running: Halted"},
		"with time":           {vm: vm(v1.RunStrategyAlways), opts: v1.RestartOptions{GracePeriodSeconds: seconds(9)}, want: "Bad Request: For force restart, only gracePeriod=0 is supported for now"},
		"with negative time":  {vm: vm(v1.RunStrategyAlways), opts: v1.RestartOptions{GracePeriodSeconds: seconds(-9)}, want: "Bad Request: gracePeriod has to be greater or equal to 0"},
		"volumes are changed": {vm: vm(v1.RunStrategyAlways, with("VolumesChange")), vmi: vmi(v1.Running), want: "Conflict: VM has a change of its volumes under way: restart it when condition VolumesChange is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(Restart(Look(tc.vm, tc.vmi), tc.opts)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// The spec is written for strategies Always and Halted alone, whatever is asked in whatever state.
func TestNoOtherStrategyIsEverWritten(t *testing.T) {
	for _, strategy := range []v1.VirtualMachineRunStrategy{v1.RunStrategyManual, v1.RunStrategyRerunOnFailure, v1.RunStrategyOnce, v1.RunStrategyWaitAsReceiver} {
		for _, seen := range []Seen{Look(vm(strategy), nil), Look(vm(strategy, failing), nil), Look(vm(strategy), vmi(v1.Running)), Look(vm(strategy), vmi(v1.Failed)), Look(vm(strategy), vmi(v1.Succeeded))} {
			if slices.ContainsFunc(everyVerb(seen), func(a Action) bool { _, writes := a.(SetStrategy); return writes }) {
				t.Errorf("%s: %v", strategy, everyVerb(seen))
			}
		}
	}
}

// Whatever is asked of a VM, nothing is done to a VMI that has only its name.
func TestNamesakesAreLeftAlone(t *testing.T) {
	for _, strategy := range []v1.VirtualMachineRunStrategy{v1.RunStrategyAlways, v1.RunStrategyHalted, v1.RunStrategyManual, v1.RunStrategyRerunOnFailure, v1.RunStrategyOnce} {
		for _, phase := range []v1.VirtualMachineInstancePhase{v1.VmPhaseUnset, v1.Scheduling, v1.Running, v1.Failed} {
			if did := everyVerb(Look(vm(strategy, failing), strangers(phase))); slices.ContainsFunc(did, touches) {
				t.Errorf("%s, VMI %s: %s", strategy, phase, did)
			}
		}
	}
}

// touches reports whether an action changes a VMI or its launcher.
func touches(a Action) bool {
	switch a.(type) {
	case SetGrace, KillLauncher:
		return true
	}
	return false
}

// everyVerb is what all verbs would do.
func everyVerb(seen Seen) []Action {
	start, _ := Start(seen, v1.StartOptions{})
	stop, _ := Stop(seen, v1.StopOptions{GracePeriod: seconds(0)})
	restart, _ := Restart(seen, v1.RestartOptions{GracePeriodSeconds: seconds(0)})
	return slices.Concat(start, stop, restart)
}
