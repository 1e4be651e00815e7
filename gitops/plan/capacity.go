package plan

import (
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/size"
)

// Amounts are what launcher Pods request.
type Amounts struct {
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
}

// Capacity is what is requested before and after, and the difference.
type Capacity struct {
	Before Amounts `json:"before"`
	After  Amounts `json:"after"`
	Delta  Amounts `json:"delta"`
}

func requests(vmi *v1.VirtualMachineInstance, cfg config.Config) Amounts {
	r := size.Pod(vmi, cfg).Requests
	return Amounts{r[k8sv1.ResourceCPU], r[k8sv1.ResourceMemory]}
}

func (a *Amounts) add(b Amounts) {
	a.CPU.Add(b.CPU)
	a.Memory.Add(b.Memory)
}

func (a Amounts) times(n int64) Amounts {
	return Amounts{*resource.NewMilliQuantity(a.CPU.MilliValue()*n, resource.DecimalSI), *resource.NewQuantity(a.Memory.Value()*n, resource.BinarySI)}
}

// totals are the amounts of both sides.
type totals struct{ before, after Amounts }

func (t *totals) add(u totals) {
	t.before.add(u.before)
	t.after.add(u.after)
}

func (t totals) capacity() Capacity {
	delta := Amounts{t.after.CPU.DeepCopy(), t.after.Memory.DeepCopy()}
	delta.CPU.Sub(t.before.CPU)
	delta.Memory.Sub(t.before.Memory)
	return Capacity{t.before, t.after, delta}
}

func (t totals) changed() bool {
	return t.before.CPU.Cmp(t.after.CPU) != 0 || t.before.Memory.Cmp(t.after.Memory) != 0
}
