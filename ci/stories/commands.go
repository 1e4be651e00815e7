package stories

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// commands are a story's verbs; each returns what is written down.
var commands = map[string]func(*world, *datadriven.TestData) (string, error){
	"labels":  (*world).labels,
	"commit":  (*world).commit,
	"round":   (*world).roundCommand,
	"settle":  (*world).settleCommand,
	"pod":     (*world).pod,
	"agent":   (*world).agent,
	"delete":  (*world).delete,
	"request": (*world).request,
	"wait":    (*world).wait,
	"show":    (*world).show,
}

// run does one command.
func (w *world) run(d *datadriven.TestData) string {
	do, ok := commands[d.Cmd]
	if !ok {
		d.Fatalf(w.t, "no command %q", d.Cmd)
	}
	out, err := do(w, d)
	if err != nil {
		out += "error: " + hashed.ReplaceAllString(strings.ReplaceAll(err.Error(), w.namespace, "NAMESPACE"), "$1-HASH") + "\n"
	}
	return out
}

// first returns a command's first argument, an object's name.
func first(d *datadriven.TestData) string { return d.CmdArgs[0].Key }

// arg returns the value of an argument key=value, "" if it isn't there.
func arg(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return ""
}

// commit applies an object as a Git tool would.
func (w *world) commit(d *datadriven.TestData) (string, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(d.Input), o); err != nil {
		return "", err
	}
	o.SetNamespace(w.namespace)
	err := w.admin.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("git"), client.ForceOwnership)
	return fmt.Sprintf("generation %d\n", o.GetGeneration()), err
}

func (w *world) roundCommand(d *datadriven.TestData) (string, error) {
	w.kill = arg(d, "kill-before")
	err := w.round(first(d))
	w.kill, w.dead = "", false
	if err != nil && strings.Contains(err.Error(), errKilled.Error()) {
		err = nil
	}
	_, name, _ := strings.Cut(first(d), "/")
	return w.told() + w.waits(name), err
}

func (w *world) settleCommand(d *datadriven.TestData) (string, error) {
	err := w.settle(first(d))
	return w.told() + w.waits(first(d)), err
}

// waits tells when the loops look again at a VM and its VMI by themselves.
func (w *world) waits(name string) string {
	var out []string
	for object, at := range w.rechecks {
		if strings.HasSuffix(object, "/"+name) && at.After(w.now) {
			out = append(out, fmt.Sprintf("%s looks again in %s\n", object, rounded(at.Sub(w.now))))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// rounded hides a jitter, which is hashed from a UID.
func rounded(d time.Duration) string {
	switch {
	case d < 5*time.Second:
		return "seconds"
	case d < 16*time.Second:
		return "10s or half more"
	case d < 61*time.Second:
		return "40s or half more"
	}
	return "minutes"
}

func (w *world) wait(d *datadriven.TestData) (string, error) {
	by, err := time.ParseDuration(first(d))
	w.now = w.now.Add(by)
	return "", err
}

func (w *world) delete(d *datadriven.TestData) (string, error) {
	which, name, _ := strings.Cut(first(d), "/")
	var o client.Object = &v1.VirtualMachine{}
	if which == "vmi" {
		o = &v1.VirtualMachineInstance{}
	}
	o.SetNamespace(w.namespace)
	o.SetName(name)
	return "", w.admin.Delete(w.t.Context(), o)
}

// request asks for a start, a stop of this run, or a restart, as virt-api does.
func (w *world) request(d *datadriven.TestData) (string, error) {
	key := client.ObjectKey{Namespace: w.namespace, Name: first(d)}
	vm, vmi := &v1.VirtualMachine{}, &v1.VirtualMachineInstance{}
	if err := w.admin.Get(w.t.Context(), key, vm); err != nil {
		return "", err
	}
	if err := client.IgnoreNotFound(w.admin.Get(w.t.Context(), key, vmi)); err != nil {
		return "", err
	}
	before := vm.DeepCopy()
	start := v1.VirtualMachineStateChangeRequest{Action: v1.StartRequest}
	stop := v1.VirtualMachineStateChangeRequest{Action: v1.StopRequest, UID: &vmi.UID}
	vm.Status.StateChangeRequests = map[string][]v1.VirtualMachineStateChangeRequest{
		"start": {start}, "stop": {stop}, "restart": {stop, start},
	}[d.CmdArgs[1].Key]
	return "", w.admin.Status().Patch(w.t.Context(), vm, client.MergeFrom(before))
}

// show prints what a person looks at.
func (w *world) show(d *datadriven.TestData) (string, error) {
	which, name, _ := strings.Cut(first(d), "/")
	key := client.ObjectKey{Namespace: w.namespace, Name: name}
	out := ""
	var err error
	if which == "vm" {
		vm := &v1.VirtualMachine{}
		err = w.admin.Get(w.t.Context(), key, vm)
		out = fmt.Sprintf("%s created=%v ready=%v failures=%d requests=%d\n", vm.Status.PrintableStatus, vm.Status.Created, vm.Status.Ready, failures(vm), len(vm.Status.StateChangeRequests))
		for _, c := range vm.Status.Conditions {
			out += line(string(c.Type), string(c.Status), c.Reason, c.Message)
		}
	} else {
		vmi := &v1.VirtualMachineInstance{}
		err = w.admin.Get(w.t.Context(), key, vmi)
		out = fmt.Sprintf("phase=%s node=%s reason=%s finalizers=%d label=%s\n", vmi.Status.Phase, vmi.Status.NodeName, vmi.Status.Reason, len(vmi.Finalizers), vmi.Labels[v1.NodeNameLabel])
		for _, c := range vmi.Status.Conditions {
			out += line(string(c.Type), string(c.Status), c.Reason, c.Message)
		}
	}
	if apierrors.IsNotFound(err) {
		return "none\n", nil
	}
	return out, err
}

func failures(vm *v1.VirtualMachine) int {
	if vm.Status.StartFailure == nil {
		return 0
	}
	return vm.Status.StartFailure.ConsecutiveFailCount
}

func line(kind, status, reason, message string) string {
	return hashed.ReplaceAllString(fmt.Sprintf("  %s=%s %s: %s\n", kind, status, reason, message), "$1-HASH")
}
