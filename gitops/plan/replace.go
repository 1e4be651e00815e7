package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"virtstack.io/virtstack/machine/change"
)

func (i Item) key() key {
	gv, _ := schema.ParseGroupVersion(i.APIVersion) // what was built has one
	return key{gv.Group, i.Kind, i.Namespace, i.Name}
}

// replace finds VMs that come in the place of others that go: the same template under another name.
func (p *planner) replace(items []*Item) {
	var gone []*Item
	for _, i := range items {
		if i.Kind == "VirtualMachine" && i.Change == Deleted {
			gone = append(gone, i)
		}
	}
	for _, come := range items {
		k := come.key()
		if come.Kind != "VirtualMachine" || come.Change != Created || p.to.vms[k] == nil {
			continue
		}
		if at := slices.IndexFunc(gone, func(i *Item) bool { return p.twins(i.key(), k) }); at >= 0 {
			p.replaces(come, gone[at])
			gone = slices.Delete(gone, at, at+1)
		}
	}
}

func (p *planner) twins(gone, come key) bool {
	a, b := p.from.vms[gone], p.to.vms[come]
	return a != nil && equality.Semantic.DeepEqual(a.Spec.Template.Spec, b.Spec.Template.Spec)
}

func (p *planner) replaces(come, gone *Item) {
	come.Class = change.Replace
	come.Replaces = strings.TrimPrefix(gone.Namespace+"/"+gone.Name, "/")
	come.Lost, come.Kept = gone.Lost, gone.Kept
	come.Notes = append(come.Notes, "another name is another machine: UUID, serial number and addresses are others")
	if come.Namespace != gone.Namespace && len(change.Claims(p.to.vms[come.key()])) > 0 {
		come.Notes = append(come.Notes, "claims stay in namespace "+gone.Namespace+": it starts with those of its own")
		come.Lost, come.Kept = slices.Concat(come.Lost, come.Kept), nil
	} else if len(come.Kept) > 0 {
		come.Notes = append(come.Notes, "it is made before the other goes, and starts when that one has let go of the claims")
	}
}
