//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/ci/lab"
	"virtstack.io/virtstack/gitops/plan"
	"virtstack.io/virtstack/gitops/source/sourcetest"
	"virtstack.io/virtstack/machine/change"
	"virtstack.io/virtstack/virtctl"
)

// planned is a repository whose commits are planned, applied, and compared with what happens.
type planned struct {
	place
	repo *sourcetest.Repository
	vms  map[string]*v1.VirtualMachine // by name, as they are in the worktree
}

// What plan says of a change, with and without asking the cluster, is what the cluster does: one VM goes through every
// class there is.
func TestPlanIsWhatHappens(t *testing.T) {
	p := planned{newPlace(t, "plan"), sourcetest.Serve(t), map[string]*v1.VirtualMachine{}}
	p.repo.Commit("vms/README", "VMs of a test")
	p.claim("data", "16Mi")
	p.secret("seed-1", map[string]string{"a": "1"})
	p.secret("seed-2", map[string]string{"a": "2"})
	for _, s := range []struct {
		name   string
		change func(web *v1.VirtualMachine)
		code   int
		want   map[string]change.Class
	}{
		{"comes, halted", nil, 0, map[string]change.Class{"web": change.Create}},
		{"starts", func(web *v1.VirtualMachine) { web.Spec.RunStrategy = strategy(v1.RunStrategyAlways) }, 0, map[string]change.Class{"web": change.Start}},
		{"another order of disks and volumes", func(web *v1.VirtualMachine) {
			slices.Reverse(web.Spec.Template.Spec.Volumes)
			slices.Reverse(web.Spec.Template.Spec.Domain.Devices.Disks)
		}, 0, map[string]change.Class{"web": change.None}},
		{"a label of its own", func(web *v1.VirtualMachine) { web.Labels = map[string]string{"owner": "e2e"} }, 0, map[string]change.Class{"web": change.None}},
		{"a label of the guest", func(web *v1.VirtualMachine) {
			web.Spec.Template.ObjectMeta.Labels = map[string]string{"color": "green"}
		}, 0, map[string]change.Class{"web": change.Hot}},
		{"more CPUs, and the secret that a generator made anew", func(web *v1.VirtualMachine) {
			web.Spec.Template.Spec.Domain.CPU = &v1.CPU{Cores: 2}
			for i := range web.Spec.Template.Spec.Volumes {
				if s := web.Spec.Template.Spec.Volumes[i].Secret; s != nil {
					s.SecretName = "seed-2"
				}
			}
		}, 2, map[string]change.Class{"web": change.Restart}},
		{"stops", func(web *v1.VirtualMachine) { web.Spec.RunStrategy = strategy(v1.RunStrategyHalted) }, 2, map[string]change.Class{"web": change.Stop}},
		{"fewer CPUs while it is off", func(web *v1.VirtualMachine) { web.Spec.Template.Spec.Domain.CPU.Cores = 1 }, 0, map[string]change.Class{"web": change.None}},
		{"starts again", func(web *v1.VirtualMachine) { web.Spec.RunStrategy = strategy(v1.RunStrategyAlways) }, 0, map[string]change.Class{"web": change.Start}},
		{"has another name", func(web *v1.VirtualMachine) { p.rename(web, "site") }, 2, map[string]change.Class{"web": change.Delete, "site": change.Replace}},
		{"goes", func(*v1.VirtualMachine) { delete(p.vms, "site") }, 2, map[string]change.Class{"site": change.Delete}},
	} {
		p.step(s.name, s.change, s.code, s.want)
	}
	p.refused()
	p.must(theLab.Client.Get(t.Context(), p.key("data"), &k8sv1.PersistentVolumeClaim{})) // as was planned: its data is kept
}

func strategy(s v1.VirtualMachineRunStrategy) *v1.VirtualMachineRunStrategy { return &s }

// step changes the VM, plans it, applies it, and looks.
func (p planned) step(name string, mutate func(*v1.VirtualMachine), code int, want map[string]change.Class) {
	p.t.Helper()
	p.t.Log(name)
	switch {
	case mutate == nil:
		p.vms["web"] = p.vm("web", halted, with("data", claimed("data")), with("seed", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "seed-1"}}))
	case p.vms["web"] != nil:
		mutate(p.vms["web"])
	default:
		mutate(nil)
	}
	p.write()
	offline, server := p.plan(code), p.plan(code, "--server")
	for how, r := range map[string]plan.Report{"offline": offline, "of the server": server} {
		got := map[string]change.Class{}
		for _, i := range r.Objects {
			got[i.Name] = i.Class
		}
		for vm, class := range want { // what changes nothing at all isn't listed
			if _, listed := got[vm]; !listed && class == change.None {
				got[vm] = change.None
			}
		}
		if !maps.Equal(got, want) {
			p.t.Fatalf("%s: the plan %s is %v, want %v", name, how, got, want)
		}
	}
	before := map[string]facts{}
	for vm := range want {
		before[vm] = p.look(vm)
	}
	p.sync(want)
	for vm, class := range want {
		p.happens(name, vm, before[vm], class, server)
	}
	p.repo.CommitAll()
}

// write writes the VMs to the worktree.
func (p planned) write() {
	p.t.Helper()
	old, err := filepath.Glob(filepath.Join(p.repo.Dir, "vms", "*.yaml"))
	p.must(err)
	for _, file := range old {
		p.must(os.Remove(file))
	}
	for name, vm := range p.vms {
		p.must(os.WriteFile(filepath.Join(p.repo.Dir, "vms", name+".yaml"), p.text(vm), 0o600))
	}
}

func (p planned) text(vm *v1.VirtualMachine) []byte {
	p.t.Helper()
	raw, err := yaml.Marshal(vm)
	p.must(err)
	return raw
}

func (p planned) rename(vm *v1.VirtualMachine, name string) {
	delete(p.vms, vm.Name)
	vm.Name = name
	p.vms[name] = vm
}

// plan runs virtctl plan.
func (p planned) plan(code int, args ...string) plan.Report {
	p.t.Helper()
	var out, errOut bytes.Buffer
	args = append([]string{"virtctl", "plan", filepath.Join(p.repo.Dir, "vms"), "-o", "json", "--kubeconfig", theLab.Kubeconfig()}, args...)
	got := virtctl.Run(p.t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, args)
	r := plan.Report{}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || got != code {
		p.t.Fatalf("%v ended with %d, want %d: %v\n%s%s", args[1:], got, code, err, out.String(), errOut.String())
	}
	return r
}

// sync does what a Git tool does with the worktree: first what goes, for two VMs can't have one claim.
func (p planned) sync(want map[string]change.Class) {
	p.t.Helper()
	for vm, class := range want {
		if class == change.Delete {
			_, err := theLab.Kubectl(p.t.Context(), "delete", "vm", vm, "-n", p.ns, "--timeout=90s")
			p.must(err)
		}
	}
	for _, vm := range p.vms {
		_, err := theLab.Apply(p.t.Context(), string(p.text(vm)))
		p.must(err)
	}
}

// facts are what can be seen of a VM.
type facts struct {
	vm, vmi    types.UID // empty: there is none
	running    bool
	settled    bool // the controller has seen the spec, and nothing is under way
	restart    string
	labels     map[string]string // of the VMI
	generation int64
	qemu       []lab.Process
}

func (p planned) look(name string) facts {
	p.t.Helper()
	f, err := p.facts(p.t.Context(), name)
	p.must(err)
	return f
}

func (p planned) facts(ctx context.Context, name string) (facts, error) {
	vm, vmi := &v1.VirtualMachine{}, &v1.VirtualMachineInstance{}
	if err := client.IgnoreNotFound(theLab.Client.Get(ctx, p.key(name), vm)); err != nil {
		return facts{}, err
	}
	if err := client.IgnoreNotFound(theLab.Client.Get(ctx, p.key(name), vmi)); err != nil {
		return facts{}, err
	}
	s := vm.Status.PrintableStatus
	f := facts{
		vm: vm.UID, vmi: vmi.UID, running: vmi.Status.Phase == v1.Running, labels: vmi.Labels, generation: vm.Generation,
		settled: vm.Status.ObservedGeneration == vm.Generation && (s == v1.VirtualMachineStatusStopped || s == v1.VirtualMachineStatusRunning),
		qemu:    lab.QEMU(p.ns + "_" + name),
	}
	for _, c := range vm.Status.Conditions {
		if c.Type == v1.VirtualMachineRestartRequired && c.Status == k8sv1.ConditionTrue {
			f.restart = c.Message
		}
	}
	return f, nil
}

// did says what happened to a VM, in the words of a plan; empty while it isn't over.
func did(was, is facts) change.Class {
	same := was.vm == is.vm && was.vmi == is.vmi && reflect.DeepEqual(was.qemu, is.qemu)
	switch {
	case is.vm == "" && is.vmi == "" && len(is.qemu) == 0 && was.vm != "":
		return change.Delete
	case is.vm == "" || !is.settled || len(is.qemu) > 1 || was.vm != "" && was.vm != is.vm:
		return ""
	case was.vmi == "" && is.running && len(is.qemu) == 1:
		return change.Start
	case was.vm == "" && is.vmi == "":
		return change.Create
	case was.running && is.vmi == "" && len(is.qemu) == 0:
		return change.Stop
	case same && is.running && is.restart != "" && was.restart == "":
		return change.Restart
	case same && is.running && is.restart == was.restart && !maps.Equal(was.labels, is.labels):
		return change.Hot
	case same && is.restart == was.restart:
		return change.None
	}
	return ""
}

// held is for how many looks, ten a second, something has to stay as it is.
const held = 20

// happens wants what was planned to be what happens, and to be all that happens.
func (p planned) happens(step, name string, was facts, class change.Class, r plan.Report) {
	p.t.Helper()
	want, looks := class, 0
	if class == change.Replace {
		want = change.Start // of the one that takes the other's place
	}
	is := facts{}
	p.must(lab.Until(p.t.Context(), 3*time.Minute, fmt.Sprintf("%s: VM %s, planned as %s", step, name, class), func(ctx context.Context) (bool, string, error) {
		var err error
		if is, err = p.facts(ctx, name); err != nil {
			return false, "", err
		}
		got := did(was, is)
		if looks++; got != want {
			looks = 0
		}
		return looks >= held, fmt.Sprintf("%q, %+v", got, is), nil
	}))
	i := slices.IndexFunc(r.Objects, func(i plan.Item) bool { return i.Name == name })
	if i < 0 && is.generation != was.generation {
		p.t.Errorf("%s: nothing was planned, and the generation went from %d to %d", step, was.generation, is.generation)
	}
	if i < 0 || class != change.Restart {
		return
	}
	for _, path := range change.Paths(r.Objects[i].Fields, change.Restart) {
		if !strings.Contains(is.restart, path) {
			p.t.Errorf("%s: plan names %s, RestartRequired says %q", step, path, is.restart)
		}
	}
}

// refused: what plan says is refused is refused.
func (p planned) refused() {
	p.t.Helper()
	p.vms["bad"] = p.vm("bad", halted, guestMemory("0"))
	p.write()
	for _, how := range []string{"--offline", "--server"} {
		if r := p.plan(3, how); !r.Refused {
			p.t.Errorf("%s: nothing is refused: %+v", how, r)
		}
	}
	if out, err := theLab.Apply(p.t.Context(), string(p.text(p.vms["bad"]))); err == nil {
		p.t.Errorf("what plan calls refused is taken: %s", out)
	}
}
