package plan

import (
	"fmt"
	"slices"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/memorydump"
	"virtstack.io/virtstack/machine/names"
)

// DumpMemory has the guest's memory written to a file on a volume; that it fails is told by the launcher.
type DumpMemory struct {
	Pod          *k8sv1.Pod
	Volume, File string
	Patience     time.Duration
	// Bytes must be free.
	Bytes int64
}

// StopDump ends a dump that nobody wants any more.
type StopDump struct{ Pod *k8sv1.Pod }

func (a DumpMemory) String() string { return fmt.Sprintf("dumping the guest's memory to %s", a.File) }
func (a StopDump) String() string   { return "ending the dump of the guest's memory" }

// wanted is the dump that virt-controller asks for: its volume and file; false where it asks for none.
func wanted(vmi *v1.VirtualMachineInstance) (volume, file string, ok bool) {
	asked, v := memorydump.Of(vmi), memorydump.Volume(&vmi.Spec)
	if v == nil || asked.Asked == nil || asked.Volume != v.Name || asked.Claim != v.MemoryDump.ClaimName {
		return "", "", false
	}
	return v.Name, memorydump.File(vmi.Name, v.Name, asked.Asked.Time), true
}

// dumping brings the launcher to the dump that is asked for.
func dumping(s Seen) []Action {
	said := s.Guest.GetDump()
	volume, file, ok := wanted(s.VMI)
	switch {
	case said.GetRunning() && (!ok || said.GetFile() != file):
		return []Action{StopDump{s.Pod}}
	case !ok || said.GetFile() == file:
		return nil
	case memorydump.Of(s.VMI).File == file && memorydump.Of(s.VMI).Final():
		return nil
	case s.Guest.GetPhase() == guestv1.State_PHASE_SHUTTING_DOWN, !mounted(s.Pod, volume):
		return nil
	}
	return []Action{DumpMemory{s.Pod, volume, file, memorydump.Patience(&s.VMI.Spec), memorydump.Memory(&s.VMI.Spec)}}
}

// mounted tells whether the Pod has the claim of a volume: one that the VMI was given later is not in it.
func mounted(pod *k8sv1.Pod, volume string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v k8sv1.Volume) bool { return v.Name == names.PodVolume("claim", volume) })
}

// dump tells how the dump goes that is asked for; nil: nothing is known of it.
func dump(s Seen) *v1.VolumeStatus {
	volume, file, ok := wanted(s.VMI)
	if !ok {
		return nil
	}
	st := &v1.VolumeStatus{Name: volume, MemoryDumpVolume: &v1.DomainMemoryDumpInfo{TargetFileName: file}}
	said := s.Guest.GetDump()
	switch {
	case s.Pod != nil && !mounted(s.Pod, volume):
		st.Phase, st.Message = v1.MemoryDumpVolumeFailed, fmt.Sprintf("volume %q isn't mounted in the running Pod: restart the VM", volume)
		return st
	case said.GetFile() != file || said.GetVolume() != volume:
		return nil
	case said.GetRunning():
		st.Phase = v1.MemoryDumpVolumeInProgress
		return st
	case said.GetProblem() != "":
		st.Phase, st.Message = v1.MemoryDumpVolumeFailed, text(said.GetProblem())
	default:
		st.Phase = v1.MemoryDumpVolumeCompleted
	}
	if said.GetEnded().IsValid() {
		end := metav1.NewTime(said.GetEnded().AsTime().Truncate(time.Second))
		st.MemoryDumpVolume.EndTimestamp = &end
	}
	return st
}

// kept is what was said of the dump that is asked for; nil: nothing was.
func kept(vmi *v1.VirtualMachineInstance) *v1.VolumeStatus {
	volume, file, ok := wanted(vmi)
	have := memorydump.Of(vmi)
	if !ok || have.File != file {
		return nil
	}
	return &v1.VolumeStatus{
		Name: volume, Phase: have.Phase, Message: have.Message,
		MemoryDumpVolume: &v1.DomainMemoryDumpInfo{TargetFileName: file, EndTimestamp: have.Ended.DeepCopy()},
	}
}

// withDump adds what is known of the dump, or was.
func withDump(list []v1.VolumeStatus, s Seen) []v1.VolumeStatus {
	st := dump(s)
	if st == nil {
		st = kept(s.VMI)
	}
	if st == nil {
		return list
	}
	return append(list, *st)
}

// tellDump is the event of a dump that has come further than the VMI's status says.
func tellDump(vmi *v1.VirtualMachineInstance, next []v1.VolumeStatus) []Event {
	i := slices.IndexFunc(next, func(v v1.VolumeStatus) bool { return v.MemoryDumpVolume != nil })
	have := memorydump.Of(vmi)
	if i < 0 || next[i].Phase == have.Phase && next[i].MemoryDumpVolume.TargetFileName == have.File {
		return nil
	}
	kind, message := k8sv1.EventTypeNormal, "The guest's memory: "+next[i].MemoryDumpVolume.TargetFileName
	if next[i].Phase == v1.MemoryDumpVolumeFailed {
		kind, message = k8sv1.EventTypeWarning, next[i].Message
	}
	return []Event{{kind, string(next[i].Phase), message}}
}
