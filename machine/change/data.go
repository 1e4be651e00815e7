package change

import (
	"slices"

	v1 "kubevirt.io/api/core/v1"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Data is what a volume holds.
type Data struct {
	// Volume is its name in the VM; empty for a claim that no volume names.
	Volume string `json:"volume,omitempty"`
	// Kind is that of the volume, as its field is called.
	Kind string `json:"kind"`
	// Claim is the one that holds the data, if one does.
	Claim string `json:"claim,omitempty"`
}

func (d Data) String() string {
	switch {
	case d.Volume == "":
		return d.Kind + " " + d.Claim
	case d.Claim == "":
		return d.Volume + " (" + d.Kind + ")"
	}
	return d.Volume + " (" + d.Kind + " " + d.Claim + ")"
}

// OnRestart returns what the end of a guest takes, and what it leaves: what is written to an image, an empty disk or
// beside a claim that is only read is the guest's, and goes with it.
func OnRestart(vm *v1.VirtualMachine) (lost, kept []Data) {
	if vm.Spec.Template == nil {
		return nil, nil
	}
	for _, v := range vm.Spec.Template.Spec.Volumes {
		switch {
		case v.ContainerDisk != nil:
			lost = append(lost, Data{v.Name, "containerDisk", ""})
		case v.EmptyDisk != nil:
			lost = append(lost, Data{v.Name, "emptyDisk", ""})
		case v.Ephemeral != nil:
			lost = append(lost, Data{v.Name, "ephemeral", ""})
		case v.PersistentVolumeClaim != nil:
			kept = append(kept, Data{v.Name, "persistentVolumeClaim", v.PersistentVolumeClaim.ClaimName})
		case v.DataVolume != nil:
			kept = append(kept, Data{v.Name, "dataVolume", v.DataVolume.Name})
		case v.HostDisk != nil:
			kept = append(kept, Data{v.Name, "hostDisk", ""})
		}
	}
	return lost, kept
}

// onDelete returns what goes with a VM, and what stays: its own DataVolumes go, too.
func onDelete(vm *v1.VirtualMachine) (lost, kept []Data) {
	all, rest := OnRestart(vm)
	lost = all
	own := map[string]bool{}
	for _, t := range vm.Spec.DataVolumeTemplates {
		own[t.Name] = true
	}
	for _, d := range rest {
		if own[d.Claim] {
			lost = append(lost, d)
			delete(own, d.Claim)
			continue
		}
		kept = append(kept, d)
	}
	for _, t := range vm.Spec.DataVolumeTemplates {
		if own[t.Name] {
			lost = append(lost, Data{"", "dataVolumeTemplates", t.Name})
		}
	}
	return lost, kept
}

// Claims returns the names of the claims whose data a VM's guest has, those of its DataVolumes among them; sorted.
func Claims(vm *v1.VirtualMachine) []string {
	_, kept := OnRestart(vm)
	var out []string
	for _, d := range kept {
		if d.Claim != "" {
			out = append(out, d.Claim)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// claims returns which of the VM's own DataVolumes differ: one is made once, and stays when its template goes.
func claims(s Seen) []Field {
	var fields []Field
	is, want := s.Is.VM.Spec.DataVolumeTemplates, s.Want.VM.Spec.DataVolumeTemplates
	for _, t := range want {
		i := slices.IndexFunc(is, func(o v1.DataVolumeTemplateSpec) bool { return o.Name == t.Name })
		switch {
		case i < 0:
			fields = append(fields, Field{"spec.dataVolumeTemplates[" + t.Name + "]", None, "a volume of its own comes"})
		case !equality.Semantic.DeepEqual(is[i], t):
			fields = append(fields, Field{"spec.dataVolumeTemplates[" + t.Name + "]", None, "the volume that is there stays as it was made"})
		}
	}
	for _, t := range is {
		if !slices.ContainsFunc(want, func(o v1.DataVolumeTemplateSpec) bool { return o.Name == t.Name }) {
			fields = append(fields, Field{"spec.dataVolumeTemplates[" + t.Name + "]", None, "the volume stays until the VM goes"})
		}
	}
	return fields
}
