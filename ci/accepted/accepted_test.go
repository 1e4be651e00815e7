package accepted

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/size"
	"virtstack.io/virtstack/machine/storage"
	"virtstack.io/virtstack/machine/validate"
)

// hostDisks is the one directory of nodes that the configuration of the test opens.
const hostDisks = "/data/disks"

// roots are the directories in which a domain may have files: the launcher's own, and what its Pod brings.
var roots = []string{guestv1.RunDir, guestv1.DiskDir, guestv1.ImageDir, guestv1.KernelDir, guestv1.StateDir, guestv1.ClaimDir, guestv1.BlockDir, guestv1.SecretDir, guestv1.CredentialDir,
	"/usr/bin", "/usr/share", "/dev"}

func everything() config.Config {
	kv := &v1.KubeVirt{}
	kv.Annotations = map[string]string{config.HostDiskAnnotation: hostDisks}
	kv.Spec.Configuration.DeveloperConfiguration = &v1.DeveloperConfiguration{FeatureGates: []string{
		"HostDisk", "Sidecar", "VSOCK", "HostDevices", "DownwardMetrics", "VideoConfig", "PanicDevices", "RebootPolicy",
		"ReservedOverheadMemlock", "EnableVirtioFsStorageVolumes", "PersistentReservation", "ContainerPathVolumes", "WorkloadEncryptionSEV",
	}}
	return config.From(kv)
}

var many = flag.Int("machines", 3000, "how many machines TestAcceptedMachinesConvert makes")

func sources(tb testing.TB) corpus {
	return learn(tb, "../verdicts/testdata/*.yaml", "../../launcher/domain/testdata/*.yaml", "../../examples/vms/*.yaml")
}

// Machines are made of the manifests that other tests have, changed in places.
func TestAcceptedMachinesConvert(t *testing.T) {
	c, cfg, r := sources(t), everything(), rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range *many {
		script := make([]byte, 2+4*(1+r.IntN(6)))
		for i := range script {
			script[i] = byte(r.Uint32())
		}
		if converts(t, c.machine(script), cfg) {
			accepted++
		}
	}
	if accepted < *many/10 {
		t.Errorf("%d of %d machines are accepted: too few to show anything", accepted, *many)
	}
}

func FuzzAcceptedMachinesConvert(f *testing.F) {
	c, cfg := sources(f), everything()
	for i := range c.specs {
		f.Add([]byte{byte(i >> 8), byte(i), 0, byte(i), byte(i % 4), byte(i)})
	}
	f.Fuzz(func(t *testing.T, script []byte) { converts(t, c.machine(script), cfg) })
}

// converts tells whether admission accepts a machine. For one that it does, a Pod is rendered and a domain made, unless a
// message says that this release doesn't have something yet; and nothing of either is outside the launcher's own
// directories, whatever the spec says. No stage may panic.
func converts(t *testing.T, machine map[string]any, cfg config.Config) bool {
	t.Helper()
	vmi := read(machine)
	if vmi == nil {
		return false
	}
	spec, err := json.Marshal(vmi)
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := validate.Object(v1.VirtualMachineInstanceGroupVersionKind.GroupKind(), spec, nil, cfg)
	filled := defaults.Instance(vmi, cfg)
	pod, refused := podspec.Render(filled, cfg, "localhost/virt-launcher", claims(filled))
	made, wrong := domain.Convert(filled, facts(filled))
	if err != nil || len(verdict.Errors) > 0 {
		return false
	}
	// A VM's machine is checked as it is written, its VMI with its defaults: what passes once passes again.
	if again := validate.VMI(field.NewPath("spec"), &filled.Spec); len(again) > 0 {
		t.Errorf("admission accepts what it refuses with its defaults: %v\n%s", again.ToAggregate(), spec)
	}
	if refused != nil || filled.Spec.Architecture == "s390x" { // no launcher is built for it
		return true
	}
	within(t, pod)
	if wrong != nil && !strings.Contains(wrong.Error(), "not supported yet") {
		t.Errorf("admission accepts what can't be converted: %v\n%s", wrong, spec)
	}
	if wrong == nil {
		whole(t, made, spec)
	}
	return true
}

// read makes a VMI of a spec; nil where it isn't one.
func read(spec map[string]any) *v1.VirtualMachineInstance {
	raw, err := json.Marshal(spec)
	vmi := &v1.VirtualMachineInstance{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "cases", Name: "web", UID: types.UID("4f0b7f0e-7d4f-4c1b-9f0e-3b1c5d7e9f01")},
	}
	if err != nil || json.Unmarshal(raw, &vmi.Spec) != nil {
		return nil
	}
	cid := uint32(3) // virt-controller gives it
	vmi.Status.VSOCKCID = &cid
	return vmi
}

func claims(vmi *v1.VirtualMachineInstance) podspec.Claims {
	found := podspec.Claims{}
	for i := range vmi.Spec.Volumes {
		if name := storage.Claim(&vmi.Spec.Volumes[i]); name != "" {
			found[name] = len(name)%2 == 0
		}
	}
	return found
}

// facts are those of a node that prepared everything.
func facts(vmi *v1.VirtualMachineInstance) domain.Facts {
	f := domain.Facts{Sources: map[string]domain.Source{}, Interfaces: map[string]domain.Interface{}, Sockets: domain.Sockets{
		Serial: guestv1.RunDir + "/serial.sock", Agent: guestv1.RunDir + "/agent.sock", VNC: guestv1.RunDir + "/vnc.sock",
	}, Firmware: domain.ImageFirmware(guestv1.RunDir + "/vars.fd")}
	if fw := vmi.Spec.Domain.Firmware; fw.KernelBoot != nil && fw.KernelBoot.Container != nil { // defaults give every machine one
		f.Kernel = domain.Kernel{Kernel: guestv1.KernelDir + fw.KernelBoot.Container.KernelPath}
	}
	cpus := size.VCPUs(vmi) + size.PoolCPUs(vmi)
	for id := range uint(min(cpus+size.EmulatorCPUs(vmi, cpus), 2*4096)) { // two cells of cores with two threads; no more than any guest has
		f.CPUs = append(f.CPUs, domain.HostCPU{ID: id, Core: id / 2 * 2, Cell: id % 4 / 2})
	}
	block := claims(vmi)
	for i, v := range vmi.Spec.Volumes {
		at := path.Join(guestv1.DiskDir, "disk"+string(rune('a'+i%26)))
		f.Sources[v.Name] = domain.Source{Path: at, Format: domain.Raw, DirectIO: true, Block: block[storage.Claim(&v)], Blocks: domain.Blocks{Logical: 512, Physical: 4096}}
	}
	for _, n := range vmi.Spec.Domain.Devices.Interfaces {
		address := n.MacAddress
		if address == "" {
			address = "02:00:5e:00:53:0a" // the Pod's own
		}
		f.Interfaces[n.Name] = domain.Interface{Tap: "tap0", MAC: address, MTU: 1500}
	}
	return f
}

// within fails where a Pod reaches further than the launcher's directories and those that the administrator opened.
func within(t *testing.T, pod *k8sv1.Pod) {
	t.Helper()
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil && v.HostPath.Path != hostDisks {
			t.Errorf("volume %s is the node's %s", v.Name, v.HostPath.Path)
		}
	}
	for _, c := range pod.Spec.Containers {
		for _, m := range c.VolumeMounts {
			inside := slices.ContainsFunc(roots, func(root string) bool { return m.MountPath == root || strings.HasPrefix(m.MountPath, root+"/") })
			if !inside && m.MountPath != "/tmp" || m.MountPath != path.Clean(m.MountPath) || m.SubPath != "" {
				t.Errorf("volume %s is mounted at %s, part %q", m.Name, m.MountPath, m.SubPath)
			}
		}
	}
}

// whole fails where a domain isn't the XML that was meant, or names a file outside of the launcher's directories.
func whole(t *testing.T, made *libvirtxml.Domain, spec []byte) {
	t.Helper()
	text, err := made.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again := &libvirtxml.Domain{}
	if err := again.Unmarshal(text); err != nil {
		t.Fatalf("%v: %s\n%s", err, text, spec)
	}
	if back, err := again.Marshal(); err != nil || back != text {
		t.Errorf("the domain reads back as another (%v):\n%s\n%s", err, text, back)
	}
	aliases := map[string]bool{}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not XML: %v: %s\n%s", err, text, spec)
		}
		start, _ := token.(xml.StartElement)
		if name := start.Name.Local; name == "alias" && len(start.Attr) > 0 {
			if aliases[start.Attr[0].Value] {
				t.Errorf("two devices are %s: libvirt refuses that\n%s", start.Attr[0].Value, spec)
			}
			aliases[start.Attr[0].Value] = true
		}
		for _, a := range start.Attr {
			named := slices.Contains([]string{"file", "dev", "path", "dir", "socket"}, a.Name.Local)
			if named && strings.HasPrefix(a.Value, "/") && !slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(path.Clean(a.Value), root+"/") }) {
				t.Errorf("<%s %s=%q> is outside of %q\n%s", start.Name.Local, a.Name.Local, a.Value, roots, spec)
			}
		}
	}
}
