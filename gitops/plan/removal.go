package plan

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"virtstack.io/virtstack/machine/names"
)

// Removal is the VMs that go, as spec.prune of a Bundle counts them: a rename counts, and so does one that is protected.
type Removal struct {
	// VMs are those that go, as namespace/name, of Of that were there.
	VMs []string `json:"vms"`
	Of  int      `json:"of"`
	// Approval stands for exactly these VMs in spec.prune.approved of a Bundle; "" where one has the namespace that its
	// Bundle gives it.
	Approval string `json:"approval,omitempty"`
}

// Approval is what stands for exactly these VMs, each a namespace/name, in spec.prune.approved of a Bundle.
func Approval(vms []string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(vms)), "\n")+"\n")))
}

// removal is nil if no VM goes.
func (p *planner) removal() *Removal {
	r := &Removal{}
	named := true
	for k := range p.from.objects {
		if k.group != names.Machine.Group || k.kind != names.Machine.Kind {
			continue
		}
		r.Of++
		if _, stays := p.to.objects[k]; stays {
			continue
		}
		r.VMs = append(r.VMs, strings.TrimPrefix(k.namespace+"/"+k.name, "/"))
		named = named && k.namespace != ""
	}
	if len(r.VMs) == 0 {
		return nil
	}
	slices.Sort(r.VMs)
	if named {
		r.Approval = Approval(r.VMs)
	}
	return r
}
