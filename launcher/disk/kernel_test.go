package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/domain"
)

func booting(kernel, initrd string) *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{}
	vmi.Spec.Domain.Firmware = &v1.Firmware{KernelBoot: &v1.KernelBoot{
		Container: &v1.KernelBootContainer{Image: "tiny", KernelPath: kernel, InitrdPath: initrd},
	}}
	return vmi
}

func TestKernelIsFound(t *testing.T) {
	d := Dirs{Boot: t.TempDir()}
	write(t, d.Boot+"/boot/vmlinuz", []byte("k"))
	write(t, d.Boot+"/initrd", []byte("i"))
	for _, tc := range []struct {
		vmi  *v1.VirtualMachineInstance
		want domain.Kernel
	}{
		{&v1.VirtualMachineInstance{}, domain.Kernel{}},
		{booting("/boot/vmlinuz", ""), domain.Kernel{Kernel: d.Boot + "/boot/vmlinuz"}},
		{booting("/boot/vmlinuz", "/initrd"), domain.Kernel{Kernel: d.Boot + "/boot/vmlinuz", Initrd: d.Boot + "/initrd"}},
	} {
		if got, err := d.Kernel(tc.vmi); err != nil || got != tc.want {
			t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
		}
	}
}

// No path of a spec and no link in an image leads to a file outside of the image (threats S3, S8).
func TestKernelThatLeadsOut(t *testing.T) {
	d := Dirs{Boot: filepath.Join(t.TempDir(), "image")}
	secret := filepath.Join(filepath.Dir(d.Boot), "secret")
	write(t, secret, []byte("not yours"))
	write(t, d.Boot+"/k", []byte("k"))
	for name, to := range map[string]string{
		"link": secret, "relative": "../secret", "up": "..", "within": "k", "proc": "/proc/self/environ", "device": "/dev/zero",
	} {
		if err := os.Symlink(to, filepath.Join(d.Boot, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(d.Boot+"/dir", 0o755); err != nil {
		t.Fatal(err)
	}
	opened := watch(t, secret)
	for _, p := range []string{
		"/link", "/relative", "/up/secret", "/within", "/proc", "/device", "/dir", "/nope", "/k/nope",
		"../secret", "/../secret", "/up/../secret", "k", "/", ".", "/k/", "//k",
	} {
		for at, vmi := range map[string]*v1.VirtualMachineInstance{"kernelPath": booting(p, ""), "initrdPath": booting("/k", p)} {
			want := "spec.domain.firmware.kernelBoot.container." + at + ": Invalid value: \"" + p + "\""
			if got, err := d.Kernel(vmi); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s %q: got %+v, %v; want an error at that field", at, p, got, err)
			}
		}
	}
	if opened() {
		t.Error("the file outside was opened")
	}
}
