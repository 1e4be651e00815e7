package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/domain"
)

const data = "{name: data, persistentVolumeClaim: {claimName: c}}"

// onClaim is a VMI with one volume and what its claim is said to have.
func onClaim(t *testing.T, d Dirs, volume, size string) *v1.VirtualMachineInstance {
	t.Helper()
	vmi := volumes(t, volume)
	name := vmi.Spec.Volumes[0].Name
	if err := os.Mkdir(filepath.Join(d.Claims, name), 0o755); err != nil {
		t.Fatal(err)
	}
	list := k8sv1.ResourceList{k8sv1.ResourceStorage: resource.MustParse(size)}
	vmi.Status.VolumeStatus = []v1.VolumeStatus{{Name: name, PersistentVolumeClaimInfo: &v1.PersistentVolumeClaimInfo{Requests: list, Capacity: list}}}
	return vmi
}

// An image is of whole MiB whatever was asked for, leaves a reserve in its file system and is made once: what is on it stays.
func TestEmptyClaimGetsAnImage(t *testing.T) {
	d := dirs(t)
	vmi := onClaim(t, d, data, "70M")
	file := d.Claims + "/data/disk.img"
	for _, leftover := range []bool{false, true} {
		if leftover { // as a launcher leaves it that is killed before it has given the file its size
			if err := os.Truncate(file, 0); err != nil {
				t.Fatal(err)
			}
		}
		s, err := d.Prepare(t.Context(), vmi)
		if err != nil || s["data"].Path != file || s["data"].Format != domain.Raw || s["data"].ReadOnly || s["data"].Block {
			t.Fatalf("got %+v, %v", s["data"], err)
		}
		if info, err := os.Stat(file); err != nil || info.Size() != 63<<20 || info.Mode().Perm()&0o007 != 0 {
			t.Errorf("the image is %v, %v; want 63 MiB", info, err)
		}
	}
	content := bytes.Repeat([]byte("x"), 1000)
	write(t, file, content)
	if _, err := d.Prepare(t.Context(), vmi); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes of the image are left, %v", len(got), err)
	}
}

// A guest may write a header that names another file: the image is raw all the same.
func TestImageOnAClaimIsRaw(t *testing.T) {
	d := dirs(t)
	vmi := onClaim(t, d, data, "70M")
	write(t, d.Claims+"/data/disk.img", qcow2(func(h []byte) { h[15] = 8 }))
	if s, err := d.Prepare(t.Context(), vmi); err != nil || s["data"].Format != domain.Raw {
		t.Errorf("got %+v, %v", s, err)
	}
}

// What isn't a plain file is refused, and nothing is made or changed where it leads. Source: GHSA-qw6q-3pgr-5cwq.
func TestHostileImages(t *testing.T) {
	for name, make := range map[string]func(dir, file string) error{
		"link out":      func(dir, file string) error { return os.Symlink(dir+"/../outside", file) },
		"absolute link": func(_, file string) error { return os.Symlink("/etc/passwd", file) },
		"link within": func(dir, file string) error {
			return errors.Join(os.WriteFile(dir+"/other", nil, 0o600), os.Symlink("other", file))
		},
		"chain":     func(dir, file string) error { return errors.Join(os.Symlink("/", dir+"/a"), os.Symlink("a", file)) },
		"dangling":  func(_, file string) error { return os.Symlink("nowhere", file) },
		"directory": func(_, file string) error { return os.Mkdir(file, 0o755) },
		"FIFO":      func(_, file string) error { return unix.Mkfifo(file, 0o666) },
		"socket":    func(_, file string) error { return unix.Mknod(file, unix.S_IFSOCK|0o666, 0) },
	} {
		for volume, at := range map[string]string{
			data: "spec.volumes[0].persistentVolumeClaim.claimName",
			"{name: data, ephemeral: {persistentVolumeClaim: {claimName: c}}}":                        "spec.volumes[0].ephemeral.persistentVolumeClaim.claimName",
			"{name: data, dataVolume: {name: c}}":                                                     "spec.volumes[0].dataVolume.name",
			"{name: data, hostDisk: {path: /data/disks/disk.img, type: DiskOrCreate, capacity: 4Mi}}": "spec.volumes[0].hostDisk.path",
			"{name: data, persistentVolumeClaim: {claimName: c, readOnly: true}}":                     "spec.volumes[0].persistentVolumeClaim.claimName",
		} {
			d := dirs(t)
			vmi := onClaim(t, d, volume, "70M")
			outside := d.Claims + "/outside"
			write(t, outside, nil)
			if err := make(d.Claims+"/data", d.Claims+"/data/disk.img"); err != nil {
				t.Fatal(err)
			}
			_, err := d.Prepare(t.Context(), vmi)
			var refusal *field.Error
			if !errors.As(err, &refusal) || refusal.Field != at || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s, %s: got %v", name, volume, err)
			}
			if info, err := os.Stat(outside); err != nil || info.Size() != 0 || info.Mode().Perm() != 0o644 {
				t.Errorf("%s, %s: the file outside is %v, %v", name, volume, info, err)
			}
			if left, err := os.ReadDir(d.Disks); err != nil || len(left) > 0 {
				t.Errorf("%s, %s: left %v, %v", name, volume, left, err)
			}
		}
	}
}

func TestClaimsThatHoldNoDisk(t *testing.T) {
	for volume, tc := range map[string]struct{ size, at, text string }{
		data: {"1k", "spec.volumes[0].persistentVolumeClaim.claimName", "room"},
		"{name: data, persistentVolumeClaim: {claimName: c, readOnly: true}}":                    {"1Gi", "spec.volumes[0].persistentVolumeClaim.claimName", "has no disk.img"},
		"{name: data, ephemeral: {persistentVolumeClaim: {claimName: c}}}":                       {"1Gi", "spec.volumes[0].ephemeral.persistentVolumeClaim.claimName", "has no disk.img"},
		"{name: data, dataVolume: {name: c}}":                                                    {"8Ei", "spec.volumes[0].dataVolume.name", "room"},
		"{name: data, hostDisk: {path: /data/disks/web.img, type: DiskOrCreate, capacity: 7Ei}}": {"1Gi", "spec.volumes[0].hostDisk.path", "room"},
	} {
		d := dirs(t)
		_, err := d.Prepare(t.Context(), onClaim(t, d, volume, tc.size))
		var refusal *field.Error
		if !errors.As(err, &refusal) || refusal.Field != tc.at || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: got %v", volume, err)
		}
		if left, err := os.ReadDir(d.Claims + "/data"); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", volume, left, err)
		}
	}
}

// What may come by itself is no refusal, and still names the field.
func TestClaimOfUnknownSizeIsWaitedFor(t *testing.T) {
	d := dirs(t)
	vmi := onClaim(t, d, data, "1Gi")
	vmi.Status.VolumeStatus = nil
	_, err := d.Prepare(t.Context(), vmi)
	var refusal *field.Error
	if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), "spec.volumes[0].persistentVolumeClaim.claimName") {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNoDevice(t *testing.T) {
	d := dirs(t)
	write(t, d.Blocks+"/data", []byte("x"))
	_, err := d.Prepare(t.Context(), volumes(t, data))
	if err == nil || !strings.Contains(err.Error(), "want a block device") {
		t.Errorf("got %v", err)
	}
}

func TestHostDisks(t *testing.T) {
	d := dirs(t)
	vmi := onClaim(t, d, "{name: data, hostDisk: {path: /data/disks/web.img, type: DiskOrCreate, capacity: 4000000}}", "1Gi")
	file := d.Claims + "/data/web.img"
	s, err := d.Prepare(t.Context(), vmi)
	if info, statErr := os.Stat(file); err != nil || statErr != nil || s["data"].Path != file || info.Size() != 4<<20 {
		t.Errorf("made %v, %+v: %v, %v", info, s, err, statErr)
	}
	write(t, file, []byte("there"))
	if err := os.Chmod(file, 0o604); err != nil {
		t.Fatal(err)
	}
	vmi.Spec.Volumes[0].HostDisk = &v1.HostDisk{Path: "/data/disks/web.img", Type: v1.HostDiskExists}
	_, err = d.Prepare(t.Context(), vmi)
	if info, statErr := os.Stat(file); err != nil || statErr != nil || info.Size() != 5 || info.Mode().Perm() != 0o604 {
		t.Errorf("the file that was there is %v: %v, %v", info, err, statErr)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Prepare(t.Context(), vmi); err == nil || !strings.Contains(err.Error(), "DiskOrCreate") {
		t.Errorf("without a file: %v", err)
	}
}
