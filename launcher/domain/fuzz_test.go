package domain_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/size"
	"virtstack.io/virtstack/machine/validate"
)

// notYet is in what is said of those parts of a spec that this version doesn't have: nobody finds them wrong.
const notYet = "supported"

// FuzzConvert: no spec makes the converter panic, what validation accepts is converted, and what comes out is XML that
// says the same when it is read.
func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var in struct {
			VMI struct{ Spec any }
		}
		if err := yaml.Unmarshal(raw, &in); err != nil {
			f.Fatal(err)
		}
		spec, err := yaml.Marshal(in.VMI.Spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(spec, true)
		f.Add(spec, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, kvm bool) {
		vmi := &v1.VirtualMachineInstance{}
		if len(raw) > 1<<14 || yaml.Unmarshal(raw, &vmi.Spec) != nil {
			return
		}
		vmi.Namespace, vmi.Name, vmi.UID = "shop", "web", "u-1"
		complete(&vmi.Spec)
		accepted := len(validate.VMI(field.NewPath("spec"), &vmi.Spec)) == 0
		vmi = defaults.Instance(vmi, config.From(nil))
		facts := domain.Facts{KVM: kvm}
		if accepted {
			facts = factsOf(vmi, kvm)
		}
		d, err := domain.Convert(vmi, facts)
		switch {
		case !accepted:
		case err != nil:
			wrong(t, err, raw)
		default:
			readsAs(t, d)
		}
	})
}

// complete gives a spec the volumes and networks that its devices name, so that it isn't refused for those.
func complete(spec *v1.VirtualMachineInstanceSpec) {
	volumes, networks := map[string]bool{}, map[string]bool{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = true
	}
	for _, n := range spec.Networks {
		networks[n.Name] = true
	}
	add := func(name string, source v1.VolumeSource) {
		if !volumes[name] {
			volumes[name] = true
			spec.Volumes = append(spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
		}
	}
	for _, f := range spec.Domain.Devices.Filesystems {
		add(f.Name, v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s"}})
	}
	claim := v1.PersistentVolumeClaimVolumeSource{}
	claim.ClaimName = "c"
	for _, d := range spec.Domain.Devices.Disks {
		add(d.Name, v1.VolumeSource{PersistentVolumeClaim: &claim})
	}
	for _, i := range spec.Domain.Devices.Interfaces {
		source := v1.NetworkSource{Pod: &v1.PodNetwork{}}
		if i.Masquerade == nil {
			source = v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: "n"}}
		}
		if !networks[i.Name] {
			networks[i.Name] = true
			spec.Networks = append(spec.Networks, v1.Network{Name: i.Name, NetworkSource: source})
		}
	}
}

// wrong fails for an error of what was accepted, unless it is of something that isn't there yet.
func wrong(t *testing.T, err error, spec []byte) {
	t.Helper()
	for line := range strings.SplitSeq(strings.Trim(err.Error(), "[]"), ", spec.") {
		if !strings.Contains(line, notYet) {
			t.Errorf("accepted, and then: %s\n%s", line, spec)
		}
	}
}

func readsAs(t *testing.T, d *libvirtxml.Domain) {
	t.Helper()
	text, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var again libvirtxml.Domain
	if err := again.Unmarshal(text); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if second, err := again.Marshal(); err != nil || second != text {
		t.Errorf("reads as something else: %v\n%s\n%s", err, text, second)
	}
}

// factsOf are what a launcher would find for a VMI: a file for each volume, a tap device for each interface, the node's
// devices and CPUs that it asks for.
func factsOf(vmi *v1.VirtualMachineInstance, kvm bool) domain.Facts {
	facts := domain.Facts{
		KVM: kvm, Sources: map[string]domain.Source{}, Interfaces: map[string]domain.Interface{}, Filesystems: map[string]string{},
		Sockets:  domain.Sockets{Serial: "/serial", Agent: "/agent", VNC: "/vnc", Metrics: "/metrics"},
		Firmware: domain.ImageFirmware("/nvram"), Assigned: map[string]domain.Assigned{},
		Kernel: domain.Kernel{Kernel: "/vmlinuz", Initrd: "/initrd"},
		Tables: map[string]string{"slic": "/slic.bin", "msdm": "/msdm.bin"},
	}
	for i, v := range vmi.Spec.Volumes {
		block := v.PersistentVolumeClaim != nil && i%2 == 0
		facts.Sources[v.Name] = domain.Source{Path: "/disk", Format: domain.Raw, DirectIO: true, Block: block}
		facts.Filesystems[v.Name] = "/share"
	}
	devices := &vmi.Spec.Domain.Devices
	for _, i := range devices.Interfaces {
		facts.Interfaces[i.Name] = domain.Interface{Tap: "tap0", MAC: "02:00:5e:00:53:01"}
	}
	var names []string
	for _, g := range devices.GPUs {
		names = append(names, g.DeviceName)
	}
	for _, h := range devices.HostDevices {
		names = append(names, h.DeviceName)
	}
	for _, name := range names {
		key := strings.ToUpper(strings.NewReplacer("/", "_", ".", "_").Replace(name))
		a := facts.Assigned[key]
		a.PCI = append(slices.Clone(a.PCI), fmt.Sprintf("0000:81:%02x.0", len(a.PCI)%32))
		facts.Assigned[key] = a
	}
	others := size.VCPUs(vmi) + size.PoolCPUs(vmi)
	for id := range uint(min(others+size.EmulatorCPUs(vmi, others), 8192)) {
		facts.CPUs = append(facts.CPUs, domain.HostCPU{ID: id, Core: id &^ 1})
	}
	id := uint32(3)
	vmi.Status.VSOCKCID = &id
	return facts
}
