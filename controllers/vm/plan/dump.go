package plan

import (
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/memorydump"
)

// dumpMargin is how long a node agent's word of a dump may take beyond the dump.
const dumpMargin = time.Minute

// ended is said of a dump whose guest is gone.
const ended = "the guest ended before its memory was dumped: start the VM and ask again"

// SetDump replaces the request for a memory dump that was seen; nil: there is none any more.
type SetDump struct {
	VM      *v1.VirtualMachine
	Request *v1.VirtualMachineMemoryDumpRequest
}

// AskDump has the VMI's node agent dump the guest's memory to a volume, by its status; a nil Info ends that.
type AskDump struct {
	VMI    *v1.VirtualMachineInstance
	Volume string
	Info   *v1.DomainMemoryDumpInfo
}

// NameDump tells on a claim which file the last dump is.
type NameDump struct{ Claim, File string }

func (a SetDump) String() string {
	if a.Request == nil {
		return "forgetting the memory dumps of VM " + a.VM.Name
	}
	return fmt.Sprintf("saying that the memory dump of VM %s is %s", a.VM.Name, a.Request.Phase)
}

func (a AskDump) String() string {
	if a.Info == nil {
		return "taking back the memory dump of VMI " + a.VMI.Name
	}
	return fmt.Sprintf("asking for a memory dump of VMI %s to volume %s", a.VMI.Name, a.Volume)
}

func (a NameDump) String() string {
	return fmt.Sprintf("naming memory dump %s on PersistentVolumeClaim %s", a.File, a.Claim)
}

// dump brings the request for a memory dump one step on, and the VMI to what it asks for. The step is recorded before it
// is acted on; only what ends a request for good comes before its record.
func dump(now time.Time, s Seen) ([]Action, time.Time) {
	have := s.VM.Status.MemoryDumpRequest
	if have == nil {
		return asking(s.VMI, nil), time.Time{}
	}
	next := stepped(now, s, have)
	var out []Action
	if next == nil {
		return append(asking(s.VMI, nil), SetDump{s.VM, nil}), time.Time{}
	}
	if !reflect.DeepEqual(next, have) {
		if next.Phase == v1.MemoryDumpCompleted {
			out = append(out, NameDump{next.ClaimName, *next.FileName})
		}
		out = append(out, SetDump{s.VM, next})
	}
	recheck := time.Time{}
	if next.Phase == v1.MemoryDumpInProgress {
		recheck = next.StartTimestamp.Add(patience(s.VMI))
	}
	return append(out, asking(s.VMI, next)...), recheck
}

func patience(vmi *v1.VirtualMachineInstance) time.Duration {
	return memorydump.Patience(&vmi.Spec) + dumpMargin
}

// stepped returns the request as it is to be; nil: no more.
func stepped(now time.Time, s Seen, have *v1.VirtualMachineMemoryDumpRequest) *v1.VirtualMachineMemoryDumpRequest {
	switch {
	case have.Remove:
		return nil
	case have.Phase == v1.MemoryDumpCompleted, have.Phase == v1.MemoryDumpFailed:
		return have
	case have.StartTimestamp == nil:
		return begun(now, s, have)
	}
	if said := answer(s.VMI, have); said != nil {
		return concluded(now, have, said)
	}
	switch {
	case gone(s.VMI) || s.VMI.CreationTimestamp.After(have.StartTimestamp.Time):
		return failed(now, have, ended)
	case !now.Before(have.StartTimestamp.Add(patience(s.VMI))):
		return failed(now, have, fmt.Sprintf("nothing was heard of the dump in %s: look at virt-handler on node %s", patience(s.VMI), s.VMI.Status.NodeName))
	}
	return have
}

// begun returns a request that nobody has acted on yet as it is to be: it waits for a guest that starts. No two dumps of a guest begin in the same second,
// for that is what they are told apart by.
func begun(now time.Time, s Seen, have *v1.VirtualMachineMemoryDumpRequest) *v1.VirtualMachineMemoryDumpRequest {
	switch {
	case gone(s.VMI):
		return failed(now, have, ended)
	case s.VMI.Status.Phase != v1.Running:
		return have
	}
	if why := memorydump.Missing(&s.VMI.Spec, nil, have.ClaimName); why != "" {
		return failed(now, have, why)
	}
	start := metav1.NewTime(now.Truncate(time.Second))
	if start.Before(&s.VMI.CreationTimestamp) { // another machine's clock
		start = s.VMI.CreationTimestamp
	}
	if last := memorydump.Of(s.VMI).Asked; last != nil && !last.Before(&start) {
		start = metav1.NewTime(last.Add(time.Second))
	}
	out := have.DeepCopy()
	out.Phase, out.StartTimestamp = v1.MemoryDumpInProgress, &start
	return out
}

// gone tells that a VM has no guest whose memory could be dumped.
func gone(vmi *v1.VirtualMachineInstance) bool {
	return vmi == nil || lifecycle.Final(vmi) || vmi.DeletionTimestamp != nil
}

// answer returns what the node agent says of the dump that was asked for, once it has an end; nil: nothing.
func answer(vmi *v1.VirtualMachineInstance, have *v1.VirtualMachineMemoryDumpRequest) *memorydump.Status {
	if vmi == nil {
		return nil
	}
	said := memorydump.Of(vmi)
	if !said.Final() || said.Claim != have.ClaimName || !said.Asked.Equal(have.StartTimestamp) ||
		said.File != memorydump.File(vmi.Name, said.Volume, have.StartTimestamp.Time) {
		return nil
	}
	return &said
}

func concluded(now time.Time, have *v1.VirtualMachineMemoryDumpRequest, said *memorydump.Status) *v1.VirtualMachineMemoryDumpRequest {
	if said.Phase == v1.MemoryDumpVolumeFailed {
		return failed(now, have, said.Message)
	}
	out := have.DeepCopy()
	out.Phase, out.FileName, out.EndTimestamp = v1.MemoryDumpCompleted, &said.File, said.Ended.DeepCopy()
	if out.EndTimestamp == nil {
		out.EndTimestamp = second(now)
	}
	return out
}

func failed(now time.Time, have *v1.VirtualMachineMemoryDumpRequest, why string) *v1.VirtualMachineMemoryDumpRequest {
	out := have.DeepCopy()
	out.Phase, out.Message, out.EndTimestamp = v1.MemoryDumpFailed, why, second(now)
	return out
}

func second(now time.Time) *metav1.Time {
	t := metav1.NewTime(now.Truncate(time.Second))
	return &t
}

// asking brings the VMI's status to the dump of a request that runs or is done; nil: to none.
func asking(vmi *v1.VirtualMachineInstance, r *v1.VirtualMachineMemoryDumpRequest) []Action {
	if vmi == nil {
		return nil
	}
	said, v := memorydump.Of(vmi), memorydump.Volume(&vmi.Spec)
	wanted := r != nil && v != nil && v.MemoryDump.ClaimName == r.ClaimName && r.StartTimestamp != nil &&
		!vmi.CreationTimestamp.After(r.StartTimestamp.Time) && (r.Phase == v1.MemoryDumpInProgress || r.Phase == v1.MemoryDumpCompleted)
	switch {
	case !wanted && said.Asked == nil, wanted && said.Asked.Equal(r.StartTimestamp) && said.Volume == v.Name && said.Claim == r.ClaimName:
		return nil
	case !wanted:
		return []Action{AskDump{VMI: vmi}}
	}
	return []Action{AskDump{vmi, v.Name, &v1.DomainMemoryDumpInfo{ClaimName: r.ClaimName, StartTimestamp: r.StartTimestamp}}}
}
