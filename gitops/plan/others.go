package plan

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	poolv1 "kubevirt.io/api/pool/v1beta1"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/machine/change"
)

// instance judges a VMI that no VM makes: its spec can't be changed.
func (p *planner) instance(i *Item, is, want Object) {
	s := p.settled(vmiOf(is), alone(is), alone(want))
	p.capacity.add(s.totals)
	if s.totals.changed() {
		c := s.totals.capacity()
		i.Capacity = &c
	}
	d := change.VM(s.Seen)
	switch {
	case i.Change != Changed:
		i.Class, i.Lost, i.Kept = d.Class, d.Lost, d.Kept
		if i.Change == Unchanged {
			i.Class, i.Lost, i.Kept = change.None, nil, nil
		}
	case len(i.Fields) > 0 && strings.HasPrefix(i.Fields[len(i.Fields)-1].Path, "spec"):
		i.Class = change.Replace
		i.Lost, i.Kept = d.Lost, d.Kept
		i.Notes = append(i.Notes, "the spec of a VMI can't be changed: it has to be deleted and made anew")
	}
}

func vmiOf(o Object) *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{}
	if o.Unstructured == nil || !decode(o.Unstructured, vmi) {
		return nil
	}
	return vmi
}

// alone returns the VM that would make a VMI: of one that has ended, a VM that is halted, for it never runs again.
func alone(o Object) *v1.VirtualMachine {
	vmi := vmiOf(o)
	if vmi == nil {
		return nil
	}
	strategy := v1.RunStrategyAlways
	if vmi.IsFinal() {
		strategy = v1.RunStrategyHalted
	}
	vm := &v1.VirtualMachine{ObjectMeta: vmi.ObjectMeta}
	vm.Spec.RunStrategy = &strategy
	vm.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{Spec: vmi.Spec}
	return vm
}

// pool judges a pool by the VM of its template, and by how many it has: what a controller would do. What its VMs would
// ask for isn't asked for, and not in the sum.
func (p *planner) pool(i *Item, is, want Object) {
	a, before := pooled(is)
	b, after := pooled(want)
	asked := *p
	asked.live = false // a cluster has none of its VMs
	s := asked.settled(nil, a, b)
	t := totals{s.totals.before.times(before), s.totals.after.times(after)}
	if t.changed() {
		c := t.capacity()
		i.Capacity = &c
	}
	if i.Change == Unchanged {
		return
	}
	d := change.VM(s.Seen)
	if i.Change != Changed || before > 0 {
		i.Class, i.Lost, i.Kept = d.Class, d.Lost, d.Kept
	}
	var effects []change.Field
	for _, f := range d.Fields {
		f.Path = "spec.virtualMachineTemplate." + f.Path
		effects = append(effects, f)
	}
	i.Fields = append(effects, uncovered(i.Fields, effects)...)
	i.Notes = append(i.Notes, "this version has no controller for pools: none of this happens until one has")
	switch {
	case i.Change == Changed && after > before:
		i.Class = change.Worst(i.Class, change.Start)
		i.Notes = append(i.Notes, fmt.Sprintf("%d VMs become %d", before, after))
	case i.Change == Changed && after < before:
		i.Class = change.Delete
		i.Notes = append(i.Notes, fmt.Sprintf("%d VMs become %d: the others are deleted", before, after))
	}
}

func pooled(o Object) (*v1.VirtualMachine, int64) {
	pool := &poolv1.VirtualMachinePool{}
	if o.Unstructured == nil || !decode(o.Unstructured, pool) || pool.Spec.VirtualMachineTemplate == nil || pool.Spec.VirtualMachineTemplate.Spec.Template == nil {
		return nil, 0
	}
	vm := &v1.VirtualMachine{Spec: pool.Spec.VirtualMachineTemplate.Spec}
	vm.Namespace, vm.Name = pool.Namespace, pool.Name
	if pool.Spec.Replicas != nil {
		return vm, int64(*pool.Spec.Replicas)
	}
	return vm, 1
}

// set judges a replica set.
func (p *planner) set(i *Item, _, _ Object) {
	if i.Change != Unchanged {
		i.Notes = append(i.Notes, "this version has no controller for replica sets: no guest comes or goes by it")
	}
}

// install judges the KubeVirt: what guests got from it they keep.
func (p *planner) install(i *Item, _, _ Object) {
	switch i.Change {
	case Deleted:
		i.Class = change.Delete
		i.Notes = append(i.Notes, "virtstack is uninstalled, which waits while there are VMs unless uninstallStrategy says otherwise")
	case Changed:
		i.Notes = append(i.Notes, "running guests keep the defaults that they were made with; others get the new ones at their next start")
	}
}

// bundle judges a Bundle by what it may prune.
func (p *planner) bundle(i *Item, is, want Object) {
	a, b := bundleOf(is), bundleOf(want)
	prunes := a != nil && a.PrunesAtEnd()
	keeps := prunes && a.Spec.Prune != nil && a.Spec.Prune.VMs == v1alpha1.PruneKeep
	switch {
	case i.Change == Deleted && prunes && !keeps:
		i.Class = change.Delete
		i.Notes = append(i.Notes, "all that it applied is pruned with it, VMs among that")
	case i.Change == Deleted && prunes:
		i.Notes = append(i.Notes, "all that it applied is pruned with it, but for VMs and their disks")
	case i.Change == Deleted:
		i.Notes = append(i.Notes, "what it applied stays")
	case i.Change == Created:
		i.Class = change.Create
		i.Notes = append(i.Notes, "what it will apply is planned where it is: plan its path of its repository")
	case i.Change == Changed && a != nil && b != nil:
		p.moved(i, a, b)
	}
}

func (p *planner) moved(i *Item, a, b *v1alpha1.Bundle) {
	prunes := b.Prunes() && b.Spec.Prune.VMs != v1alpha1.PruneKeep
	away := a.Spec.Path != b.Spec.Path || a.Spec.TargetNamespace != b.Spec.TargetNamespace ||
		a.Spec.Source.Git != nil && b.Spec.Source.Git != nil && a.Spec.Source.Git.URL != b.Spec.Source.Git.URL
	switch {
	case away && prunes:
		i.Class = change.Delete
		i.Notes = append(i.Notes, "it prunes what it doesn't find where it looks now, VMs among that: plan that path, too")
	case !reflect.DeepEqual(a.Spec.Source, b.Spec.Source) || away:
		i.Notes = append(i.Notes, "it applies another revision: plan its path from the one to the other")
	case b.Spec.Suspend && !a.Spec.Suspend:
		i.Notes = append(i.Notes, "it stops to apply; what is applied stays")
	}
}

func bundleOf(o Object) *v1alpha1.Bundle {
	b := &v1alpha1.Bundle{}
	if o.Unstructured == nil || !decode(o.Unstructured, b) {
		return nil
	}
	return b
}

// claim judges a claim or a DataVolume.
func (p *planner) claim(i *Item, is, want Object) {
	switch i.Change {
	case Created:
		i.Class = change.Create
	case Deleted:
		i.Class = change.Delete
		i.Lost = []change.Data{{Kind: i.Kind, Claim: i.Name}}
		i.Notes = append(i.Notes, "its data is lost if the storage class says so (reclaimPolicy Delete)")
	case Changed:
		for n, f := range i.Fields {
			switch {
			case !strings.HasPrefix(f.Path, "spec"):
			case f.Path == "spec.resources.requests.storage" && !shrinks(is, want):
				i.Fields[n].Why = "grows where the storage class allows it; a guest sees it at its next start"
			default:
				i.Refused = append(i.Refused, Refusal{f.Path, "Forbidden: can't be changed once it is made"})
			}
		}
	}
}

func shrinks(is, want Object) bool {
	a, b := storage(is), storage(want)
	return a.Cmp(b) > 0
}

func storage(o Object) resource.Quantity {
	text, _, _ := unstructured.NestedString(o.Object, "spec", "resources", "requests", "storage")
	q, _ := resource.ParseQuantity(text) // no quantity is none
	return q
}

// namespace judges what takes other objects with it.
func (p *planner) namespace(i *Item, _, _ Object) {
	if i.Change == Deleted {
		i.Class = change.Delete
		i.Notes = append(i.Notes, "everything in it goes with it, whether it is in Git or not")
	}
}
