// Package plan says what a change of a repository does to the VMs, and to what they stand on. It is pure: both sides are
// built objects, and what it says of a VM's guest is what the VM controller asks, machine/change.
package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/change"
)

// Object is one built object.
type Object struct {
	*unstructured.Unstructured
	// File is where it comes from, if that is known.
	File string
	// Refused says why the API server would not take it.
	Refused []Refusal
	// Policies are those that its change breaks; of an object that goes, those that the deletion breaks.
	Policies []Broken
	// Notes are what else there is to say.
	Notes []string
}

// Broken is a policy that a change breaks.
type Broken struct {
	Policy  string `json:"policy"`
	Message string `json:"message"`
	// Refuses: it is in force where the plan is for, and denies. Else it warns, or may not be there.
	Refuses bool `json:"refuses"`
}

// Refusal is one rule that an object breaks.
type Refusal struct {
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

func (r Refusal) String() string {
	if r.Field == "" {
		return r.Message
	}
	return r.Field + ": " + r.Message
}

// Side is what one side of a plan holds.
type Side struct {
	// Name is a revision, or what else people call it.
	Name    string
	Objects []Object
	// Beside are objects that aren't planned: what VMs refer to, and the KubeVirt.
	Beside []*unstructured.Unstructured
}

// Input is what a plan is made of.
type Input struct {
	From, To Side
	// Live: From is what a cluster has, and Guests are the VMIs of its VMs that run, by namespace/name. Else a VM of which the
	// spec wants a guest counts as running.
	Live   bool
	Guests map[string]*v1.VirtualMachineInstance
}

// What happens to an object.
const (
	Created   = "created"
	Changed   = "changed"
	Deleted   = "deleted"
	Unchanged = "unchanged"
)

// Item is what happens to one object, and by it.
type Item struct {
	// Order is when, counted from 1: objects are applied one after the other, and what is no longer wanted goes last.
	Order      int    `json:"order"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	File       string `json:"file,omitempty"`
	// Change is what happens to the object, Class what that does to guests and data.
	Change string       `json:"change"`
	Class  change.Class `json:"class"`
	// Replaces is the VM, as namespace/name, whose place it takes.
	Replaces string         `json:"replaces,omitempty"`
	Fields   []change.Field `json:"fields,omitempty"`
	// VMs are those that the change of this object reaches.
	VMs   []Reached `json:"vms,omitempty"`
	Notes []string  `json:"notes,omitempty"`
	// Lost is the data that goes, Kept what stays though its VM goes or restarts.
	Lost    []change.Data `json:"lost,omitempty"`
	Kept    []change.Data `json:"kept,omitempty"`
	Refused []Refusal     `json:"refused,omitempty"`
	// Policies are those that the change breaks.
	Policies []Broken `json:"policies,omitempty"`
	// Capacity is what the Pods of its running guests ask for.
	Capacity *Capacity `json:"capacity,omitempty"`
}

// Reached is a VM that another object's change reaches.
type Reached struct {
	Namespace string       `json:"namespace,omitempty"`
	Name      string       `json:"name"`
	Class     change.Class `json:"class"`
}

// String names the object as people do.
func (i Item) String() string {
	name := i.Name
	if i.Namespace != "" {
		name = i.Namespace + "/" + name
	}
	return i.Kind + " " + name
}

// IsRefused tells whether the API server would not take it.
func (i Item) IsRefused() bool {
	return len(i.Refused) > 0 || slices.ContainsFunc(i.Policies, func(b Broken) bool { return b.Refuses })
}

// Report is a plan.
type Report struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Class is the worst of the items'; Refused: at least one isn't taken.
	Class   change.Class         `json:"class"`
	Refused bool                 `json:"refused"`
	Counts  map[change.Class]int `json:"counts"`
	// Unchanged is how many objects are as they were, and aren't listed.
	Unchanged int      `json:"unchanged"`
	Objects   []Item   `json:"objects"`
	Capacity  Capacity `json:"capacity"`
	// Removal is of the VMs that go, if any.
	Removal *Removal `json:"removal,omitempty"`
}

// For plans the change from one side to the other. The order of the sides' objects doesn't matter.
func For(in Input) Report {
	p := planner{live: in.Live, guests: in.Guests, from: newSide(in.From), to: newSide(in.To)}
	p.settle()
	items := p.items()
	p.reach(items)
	p.claims(items)
	p.replace(items)
	r := Report{From: in.From.Name, To: in.To.Name, Class: change.None, Counts: map[change.Class]int{}, Objects: []Item{}, Capacity: p.capacity.capacity(), Removal: p.removal()}
	for _, i := range items {
		if i.Change == Unchanged && i.Class == change.None && len(i.Notes) == 0 && !i.IsRefused() {
			r.Unchanged++
			continue
		}
		r.Class = change.Worst(r.Class, i.Class)
		r.Refused = r.Refused || i.IsRefused()
		r.Counts[i.Class]++
		r.Objects = append(r.Objects, *i)
	}
	order(r.Objects)
	return r
}

// items compares all objects; sorted by kind and name.
func (p *planner) items() []*Item {
	keys := map[key]bool{}
	for k := range p.from.objects {
		keys[k] = true
	}
	for k := range p.to.objects {
		keys[k] = true
	}
	var items []*Item
	for _, k := range slices.SortedFunc(keysOf(keys), compareKeys) {
		items = append(items, p.item(k))
	}
	return items
}

func (p *planner) item(k key) *Item {
	is, was := p.from.objects[k]
	want, wanted := p.to.objects[k]
	shown := want
	if !wanted {
		shown = is
	}
	i := &Item{APIVersion: shown.GetAPIVersion(), Kind: k.kind, Namespace: k.namespace, Name: k.name, File: shown.File, Change: Changed,
		Class: change.None, Refused: shown.Refused, Policies: shown.Policies, Notes: slices.Clone(shown.Notes)}
	switch {
	case !was:
		i.Change = Created
	case !wanted:
		i.Change = Deleted
	default:
		i.Fields = differences(is.Object, want.Object)
		switch {
		case len(i.Fields) > 0:
		case written(is.Object, want.Object):
			i.Notes = append(i.Notes, "only the order of lists differs, which says nothing")
		default:
			i.Change = Unchanged
		}
	}
	if judge, ok := judges[k.group+"/"+k.kind]; ok {
		judge(p, i, is, want)
	}
	return i
}

// judges say what a change of an object of a kind does; a kind that has none does nothing to guests and data.
var judges = map[string]func(p *planner, i *Item, is, want Object){
	"kubevirt.io/VirtualMachine":                                 (*planner).machine,
	"kubevirt.io/VirtualMachineInstance":                         (*planner).instance,
	"pool.kubevirt.io/VirtualMachinePool":                        (*planner).pool,
	"kubevirt.io/VirtualMachineInstanceReplicaSet":               (*planner).set,
	"kubevirt.io/KubeVirt":                                       (*planner).install,
	"virtstack.io/Bundle":                                        (*planner).bundle,
	"instancetype.kubevirt.io/VirtualMachineInstancetype":        (*planner).instancetype,
	"instancetype.kubevirt.io/VirtualMachineClusterInstancetype": (*planner).instancetype,
	"instancetype.kubevirt.io/VirtualMachinePreference":          (*planner).instancetype,
	"instancetype.kubevirt.io/VirtualMachineClusterPreference":   (*planner).instancetype,
	"/PersistentVolumeClaim":                                     (*planner).claim,
	"cdi.kubevirt.io/DataVolume":                                 (*planner).claim,
	"/Namespace":                                                 (*planner).namespace,
	"apiextensions.k8s.io/CustomResourceDefinition":              (*planner).namespace,
}
