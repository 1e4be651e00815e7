package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/change"
	"virtstack.io/virtstack/machine/instancetype"
)

// reference is a ConfigMap or Secret that a machine names.
type reference struct {
	kind, name, path string
	class            change.Class
	why              string
}

const seenAtStart = "a guest has what it held when it started"

// references returns what a VM reads, in the order of its spec.
func references(spec *v1.VirtualMachineInstanceSpec) []reference {
	var out []reference
	add := func(kind, name, path string) {
		out = append(out, reference{kind, name, path, change.Restart, seenAtStart})
	}
	local := func(r *k8sv1.LocalObjectReference, path string) {
		if r != nil {
			add("Secret", r.Name, path)
		}
	}
	for _, v := range spec.Volumes {
		at := "spec.template.spec.volumes[" + v.Name + "]"
		switch {
		case v.ConfigMap != nil:
			add("ConfigMap", v.ConfigMap.Name, at+".configMap")
		case v.Secret != nil:
			add("Secret", v.Secret.SecretName, at+".secret")
		case v.CloudInitNoCloud != nil:
			local(v.CloudInitNoCloud.UserDataSecretRef, at+".cloudInitNoCloud.secretRef")
			local(v.CloudInitNoCloud.NetworkDataSecretRef, at+".cloudInitNoCloud.networkDataSecretRef")
		case v.CloudInitConfigDrive != nil:
			local(v.CloudInitConfigDrive.UserDataSecretRef, at+".cloudInitConfigDrive.secretRef")
			local(v.CloudInitConfigDrive.NetworkDataSecretRef, at+".cloudInitConfigDrive.networkDataSecretRef")
		case v.Sysprep != nil && v.Sysprep.ConfigMap != nil:
			add("ConfigMap", v.Sysprep.ConfigMap.Name, at+".sysprep.configMap")
		case v.Sysprep != nil:
			local(v.Sysprep.Secret, at+".sysprep.secret")
		}
	}
	return append(out, credentials(spec.AccessCredentials)...)
}

func credentials(all []v1.AccessCredential) []reference {
	var out []reference
	for n, c := range all {
		r := reference{kind: "Secret", path: fmt.Sprintf("spec.template.spec.accessCredentials[%d]", n), class: change.Restart, why: seenAtStart}
		agent := c.UserPassword != nil
		switch {
		case c.UserPassword != nil && c.UserPassword.Source.Secret != nil:
			r.name = c.UserPassword.Source.Secret.SecretName
		case c.SSHPublicKey != nil && c.SSHPublicKey.Source.Secret != nil:
			r.name, agent = c.SSHPublicKey.Source.Secret.SecretName, c.SSHPublicKey.PropagationMethod.QemuGuestAgent != nil
		default:
			continue
		}
		if agent {
			r.class, r.why = change.Hot, "the guest agent sets it"
		}
		out = append(out, r)
	}
	return out
}

// reach carries changes of ConfigMaps, Secrets, instancetypes and preferences to the VMs that name them.
func (p *planner) reach(items []*Item) {
	byKey := map[key]*Item{}
	for _, i := range items {
		byKey[i.key()] = i
	}
	for _, k := range slices.SortedFunc(maps.Keys(p.to.vms), compareKeys) {
		vm := p.to.vms[k]
		for _, r := range references(&vm.Spec.Template.Spec) {
			if to := byKey[key{"", r.kind, k.namespace, r.name}]; to != nil {
				p.read(byKey[k], to, r)
			}
		}
		for _, m := range instancetype.Matchers(vm) {
			r, ok := m.Reference(vm.Namespace)
			to := byKey[key{"instancetype.kubevirt.io", r.Kind, r.Namespace, r.Name}]
			if ok && to != nil && (to.Change == Changed || to.Change == Deleted) {
				to.VMs = append(to.VMs, Reached{k.namespace, k.name, change.None})
			}
		}
	}
}

// read notes that a VM reads an object that changes or goes. One that comes is no news to a guest.
func (p *planner) read(vm, to *Item, r reference) {
	s := p.machines[vm.key()]
	runs := s.Runs && s.Is.VM != nil && vm.Class != change.Stop
	name := r.kind + " " + r.name
	class, why := change.None, name+" changes; "+later
	switch {
	case to.Change == Deleted:
		vm.Notes = append(vm.Notes, "names "+name+" ("+r.path+"), which goes: its next start waits for it")
	case to.Change != Changed || !content(to.Fields):
		return
	case runs:
		class, why = r.class, name+" changes; "+r.why
	}
	to.Class = change.Worst(to.Class, class)
	to.VMs = append(to.VMs, Reached{vm.Namespace, vm.Name, class})
	if to.Change == Deleted {
		return
	}
	vm.Fields = append(vm.Fields, change.Field{Path: r.path, Class: class, Why: why})
	vm.Class = change.Worst(vm.Class, class)
	if class == change.Restart && len(vm.Lost)+len(vm.Kept) == 0 {
		vm.Lost, vm.Kept = change.OnRestart(s.Is.VM)
	}
}

const later = "the guest has it at its next start"

// content tells whether more than labels and annotations differ.
func content(fields []change.Field) bool {
	return slices.ContainsFunc(fields, func(f change.Field) bool { return !strings.HasPrefix(f.Path, "metadata") })
}

// instancetype judges an instancetype or preference: a change of it changes no VM that has it.
func (p *planner) instancetype(i *Item, _, _ Object) {
	switch i.Change {
	case Changed:
		i.Notes = append(i.Notes, "VMs that have it keep it as it was; others get the new one")
	case Deleted:
		i.Notes = append(i.Notes, "VMs that have it keep it; one that names it anew waits for it")
	}
}

// claims moves the data of claims that go to what is lost.
func (p *planner) claims(items []*Item) {
	gone := map[[2]string]*Item{}
	for _, i := range items {
		if (i.Kind == "PersistentVolumeClaim" || i.Kind == "DataVolume") && i.Change == Deleted {
			gone[[2]string{i.Namespace, i.Name}] = i
		}
	}
	for _, i := range items {
		if i.Kind != "VirtualMachine" || len(gone) == 0 {
			continue
		}
		if vm := p.to.vms[i.key()]; vm != nil {
			noteClaims(i, change.Claims(vm), gone)
		}
		i.Kept = slices.DeleteFunc(i.Kept, func(d change.Data) bool {
			claim := gone[[2]string{i.Namespace, d.Claim}]
			if claim == nil || d.Claim == "" {
				return false
			}
			i.Lost = append(i.Lost, d)
			claim.VMs = append(claim.VMs, Reached{i.Namespace, i.Name, i.Class})
			return true
		})
	}
}

func noteClaims(i *Item, claims []string, gone map[[2]string]*Item) {
	for _, c := range claims {
		if gone[[2]string{i.Namespace, c}] != nil {
			i.Notes = append(i.Notes, "names the claim "+c+", which goes: it stays until the guest ends, and its next start waits for another")
		}
	}
}
