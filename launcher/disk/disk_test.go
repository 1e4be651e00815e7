package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func dirs(t *testing.T) Dirs {
	t.Helper()
	d := t.TempDir()
	for _, sub := range []string{"disks", "images", "secrets", "claims", "blocks"} {
		if err := os.Mkdir(filepath.Join(d, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return Dirs{Disks: d + "/disks", Images: d + "/images", Secrets: d + "/secrets", Claims: d + "/claims", Blocks: d + "/blocks"}
}

func volumes(t *testing.T, text string) *v1.VirtualMachineInstance {
	t.Helper()
	vmi := &v1.VirtualMachineInstance{}
	if err := yaml.UnmarshalStrict([]byte("{metadata: {name: web, uid: u-1}, spec: {domain: {devices: {}}, volumes: ["+text+"]}}"), vmi); err != nil {
		t.Fatal(err)
	}
	return vmi
}

// Every refusal is the spec's or the image's fault, names its field, and leaves nothing behind: sizes of
// nothing, names and paths that lead out of the launcher's directories. Source: GHSA-qv98-3369-g364.
func TestRefusals(t *testing.T) {
	const path = "{name: root, containerDisk: {image: i, path: %}}"
	for volume, want := range map[string]string{
		"{name: .., emptyDisk: {capacity: 1Gi}}":                            "spec.volumes[0].name",
		"{name: a/b, emptyDisk: {capacity: 1Gi}}":                           "spec.volumes[0].name",
		`{name: "a\nb", emptyDisk: {capacity: 1Gi}}`:                        "spec.volumes[0].name",
		"{name: " + strings.Repeat("a", 300) + ", emptyDisk: {}}":           "spec.volumes[0].name",
		"{name: none, emptyDisk: {capacity: 0}}":                            "spec.volumes[0].emptyDisk.capacity",
		"{name: other, containerPath: {path: /data}}":                       "spec.volumes[0]",
		"{name: gone, containerDisk: {image: i}}":                           "spec.volumes[0].containerDisk.image",
		"{name: seed, cloudInitNoCloud: {userDataBase64: '*'}}":             "spec.volumes[0].cloudInitNoCloud",
		"{name: seed, cloudInitNoCloud: {secretRef: {name: gone}}}":         "spec.volumes[0].cloudInitNoCloud",
		strings.Replace(path, "%", "../../../../etc/hostname", 1):           "spec.volumes[0].containerDisk.path",
		strings.Replace(path, "%", "/disk/../../etc/hostname", 1):           "spec.volumes[0].containerDisk.path",
		strings.Replace(path, "%", "/", 1):                                  "spec.volumes[0].containerDisk.path",
		strings.Replace(path, "%", "/disk/", 1):                             "spec.volumes[0].containerDisk.path",
		strings.Replace(path, "%", "disk/root.img", 1):                      "spec.volumes[0].containerDisk.path",
		strings.Replace(path, "%", "//disk//root.img", 1):                   "spec.volumes[0].containerDisk.path",
		strings.Replace(path, "%", "/disk/./root.img", 1):                   "spec.volumes[0].containerDisk.path",
		strings.Replace(path, "%", "/proc/self/environ", 1):                 "spec.volumes[0].containerDisk.path",
		strings.Replace(path, "%", `"/disk/root\0.img"`, 1):                 "spec.volumes[0].containerDisk.path",
		"{name: both, containerDisk: {image: i}, emptyDisk: {capacity: 1}}": "spec.volumes[0].containerDisk.image",
	} {
		d := dirs(t)
		_, err := d.Prepare(t.Context(), volumes(t, volume))
		var refusal *field.Error
		if !errors.As(err, &refusal) || refusal.Field != want {
			t.Errorf("%s: got %v, want a refusal at %s", volume, err, want)
		}
		if left, err := os.ReadDir(d.Disks); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", volume, left, err)
		}
	}
}

// A file that isn't in the image is told with the field that names it, what is missing, and what would be right.
func TestAMissingImageIsNamed(t *testing.T) {
	for volume, want := range map[string]string{
		"{name: root, containerDisk: {image: tiny, path: /disk/nope.img}}": `spec.volumes[0].containerDisk.path: Invalid value: "/disk/nope.img": image tiny: there is no /disk/nope.img: want the path of a file in it`,
		"{name: root, containerDisk: {image: tiny, path: /no/disk.img}}":   `spec.volumes[0].containerDisk.path: Invalid value: "/no/disk.img": image tiny: there is no /no/disk.img: want the path of a file in it`,
		"{name: bare, containerDisk: {image: tiny}}":                       `spec.volumes[0].containerDisk.image: Invalid value: "tiny": there is no /disk: want the disk image alone in it, or its path in containerDisk.path`,
	} {
		d := dirs(t)
		write(t, filepath.Join(d.Images, "root", "disk", "disk.img"), []byte("boot"))
		if err := os.Mkdir(filepath.Join(d.Images, "bare"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Prepare(t.Context(), volumes(t, volume)); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", volume, err, want)
		}
	}
}

// What may still come is told apart from what never will.
func TestWhatMayStillComeIsNotFound(t *testing.T) {
	for volume, want := range map[string]field.ErrorType{
		"{name: seed, cloudInitNoCloud: {secretRef: {name: gone}}}":             field.ErrorTypeNotFound,
		"{name: seed, cloudInitConfigDrive: {networkDataSecretRef: {name: x}}}": field.ErrorTypeNotFound,
		"{name: data, configMap: {name: gone}}":                                 field.ErrorTypeNotFound,
		"{name: seed, cloudInitNoCloud: {userDataBase64: '*'}}":                 field.ErrorTypeInvalid,
		"{name: root, containerDisk: {image: tiny, path: /disk/nope.img}}":      field.ErrorTypeInvalid,
	} {
		d := dirs(t)
		for _, dir := range []string{filepath.Join(d.Images, "root"), filepath.Join(d.Secrets, "data")} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		_, err := d.Prepare(t.Context(), volumes(t, volume))
		if refusal := (*field.Error)(nil); !errors.As(err, &refusal) || refusal.Type != want {
			t.Errorf("%s: got %v, want type %s", volume, err, want)
		}
	}
}

// The seed of a machine tells the guest the same ID after each restart, and is made once.
func TestSeedKeepsItsInstance(t *testing.T) {
	d := dirs(t)
	vmi := volumes(t, "{name: seed, cloudInitNoCloud: {userData: x}}")
	vmi.Spec.Domain.Firmware = &v1.Firmware{UUID: "5d307ca9-b3ef-428c-8861-06e72d69f223"}
	first, err := d.Prepare(t.Context(), vmi)
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(first["seed"].Path)
	if err != nil || !strings.Contains(string(image), "instance-id: 5d307ca9-b3ef-428c-8861-06e72d69f223\n") {
		t.Errorf("the seed doesn't hold the machine's ID: %v", err)
	}
	before, err := os.Stat(first["seed"].Path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := d.Prepare(t.Context(), vmi)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(second["seed"].Path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the seed was made again: %v", err)
	}
}

// A Secret is read through the kubelet's own links, and through none that leaves its directory.
func TestSecretsStayInTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/secret/..1/userdata", []byte("mine"))
	write(t, dir+"/outside", []byte("not yours"))
	for link, to := range map[string]string{"..data": "..1", "userdata": "..data/userdata", "networkdata": "../outside"} {
		if err := os.Symlink(to, dir+"/secret/"+link); err != nil {
			t.Fatal(err)
		}
	}
	s := secrets{dir + "/secret"}
	if got, err := s.ReadFile("userdata"); err != nil || string(got) != "mine" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := s.ReadFile("networkdata"); err == nil {
		t.Errorf("read %q from outside", got)
	}
}
