//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/ci/lab"
)

func TestVerbsStartStopRestart(t *testing.T) {
	p := newPlace(t, "verbs")
	p.create(p.vm("web", halted))
	vm := p.status("web", v1.VirtualMachineStatusStopped, 30*time.Second)
	for _, c := range vm.Status.Conditions {
		if c.Type == v1.VirtualMachineReady {
			t.Errorf("a halted VM has condition Ready=%s: want none", c.Status)
		}
	}
	virtctl := func(args ...string) {
		t.Helper()
		_, err := theLab.Run(t.Context(), "virtctl", append(args, "-n", p.ns, "web")...)
		p.must(err)
	}
	virtctl("start")
	first := p.phase("web", v1.Running, 2*time.Minute)
	p.login("web", time.Minute)
	virtctl("restart")
	second := p.another("web", first.UID, v1.Running, 3*time.Minute)
	if first.Spec.Domain.Firmware.UUID != second.Spec.Domain.Firmware.UUID {
		t.Errorf("firmware UUID changed over a restart: %s, then %s", first.Spec.Domain.Firmware.UUID, second.Spec.Domain.Firmware.UUID)
	}
	if a, b := first.Status.Interfaces[0].MAC, second.Status.Interfaces[0].MAC; a != b || a == "" {
		t.Errorf("MAC changed over a restart: %q, then %q", a, b)
	}
	virtctl("stop")
	p.gone(&v1.VirtualMachineInstance{}, "web", time.Minute)
	p.status("web", v1.VirtualMachineStatusStopped, 30*time.Second)
	if left := lab.Processes("qemu-system", p.ns); len(left) != 0 {
		t.Errorf("QEMU left after stop: %v", left)
	}
}

// another waits for a VMI of the same name that is not the one of that UID.
func (p place) another(name string, than types.UID, want v1.VirtualMachineInstancePhase, limit time.Duration) *v1.VirtualMachineInstance {
	p.t.Helper()
	vmi := &v1.VirtualMachineInstance{}
	p.must(lab.Until(p.t.Context(), limit, fmt.Sprintf("another VMI %s to be %s", name, want), func(ctx context.Context) (bool, string, error) {
		*vmi = v1.VirtualMachineInstance{}
		err := theLab.Client.Get(ctx, p.key(name), vmi)
		return vmi.UID != than && vmi.Status.Phase == want, fmt.Sprintf("%s %s", vmi.UID, vmi.Status.Phase), err
	}))
	return vmi
}

func TestGuestThatPowersOffIsStartedAgain(t *testing.T) {
	p := newPlace(t, "poweroff")
	p.create(p.vm("web"))
	first := p.phase("web", v1.Running, 2*time.Minute)
	c := p.shell("web")
	p.must(c.Send("poweroff -f\n"))
	p.another("web", first.UID, v1.Running, 2*time.Minute)
	p.login("web", time.Minute)
}

func TestLauncherWhoseLibvirtDies(t *testing.T) {
	p := newPlace(t, "libvirt")
	p.create(p.vm("web"))
	first := p.phase("web", v1.Running, 2*time.Minute)
	watch, err := theLab.Client.Watch(t.Context(), &v1.VirtualMachineInstanceList{}, client.InNamespace(p.ns))
	p.must(err)
	defer watch.Stop()
	for _, d := range lab.PodProcesses(p.ns + "_web") {
		if d.Name == "libvirtd" {
			p.must(syscall.Kill(d.PID, syscall.SIGKILL))
		}
	}
	deadline := time.After(time.Minute)
	for failed := false; !failed; {
		select {
		case e := <-watch.ResultChan():
			vmi, ok := e.Object.(*v1.VirtualMachineInstance)
			failed = ok && vmi.UID == first.UID && vmi.Status.Phase == v1.Failed
			if failed && !strings.Contains(fmt.Sprintf("%s %+v", vmi.Status.Reason, vmi.Status.Conditions), "libvirt") {
				t.Errorf("VMI Failed without saying that libvirt died: reason %q, conditions %+v", vmi.Status.Reason, vmi.Status.Conditions)
			}
		case <-deadline:
			t.Fatal("VMI was not Failed a minute after its libvirtd died")
		}
	}
	p.another("web", first.UID, v1.Running, 2*time.Minute)
}

// A VMI that no VM made keeps the defaults that it was made with, and the guest has them: here a disk for a volume alone.
func TestBareVMI(t *testing.T) {
	p := newPlace(t, "bare")
	template := p.vm("web").Spec.Template
	scratch := v1.VolumeSource{EmptyDisk: &v1.EmptyDiskSource{Capacity: quantity("8Mi")}}
	template.Spec.Volumes = append(template.Spec.Volumes, v1.Volume{Name: "scratch", VolumeSource: scratch})
	p.create(&v1.VirtualMachineInstance{ObjectMeta: objectMeta(p.ns, "web"), Spec: template.Spec})
	vmi := p.phase("web", v1.Running, 2*time.Minute)
	if d := vmi.Spec.Domain.Devices.Disks; len(d) != 2 || d[1].Name != "scratch" || d[1].Disk == nil || d[1].Disk.Bus != v1.DiskBusSATA {
		t.Errorf("VMI has disks %+v, want one for the volume that has none, and its default bus", d)
	}
	p.asked(p.shell("web"), "cat /sys/block/sda/size", "16384")
	if len(vmi.Status.Interfaces) != 1 || vmi.Status.Interfaces[0].IP == "" {
		t.Fatalf("VMI has interfaces %+v, want one with an IP", vmi.Status.Interfaces)
	}
	p.must(lab.Until(t.Context(), 30*time.Second, "the guest's web server", func(ctx context.Context) (bool, string, error) {
		body, err := get(ctx, "http://"+vmi.Status.Interfaces[0].IP+"/cgi-bin/info")
		return strings.Contains(body, "host web"), body, err
	}))
	p.must(theLab.Client.Delete(t.Context(), vmi))
	p.gone(&v1.VirtualMachineInstance{}, "web", time.Minute)
}

func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return string(body), err
}

// A guest that is deaf to the power button is destroyed when its grace period is over, not before and not much later.
func TestDeafGuestIsDestroyedAtItsDeadline(t *testing.T) {
	p := newPlace(t, "deaf")
	grace := int64(10)
	p.create(p.vm("web", func(vm *v1.VirtualMachine) { vm.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace }))
	p.phase("web", v1.Running, 2*time.Minute)
	c := p.shell("web")
	p.must(c.Send("killall acpid; echo dea''f\n"))
	p.must(c.Expect(t.Context(), "deaf", busy*10*time.Second))
	begin := time.Now()
	p.must(theLab.Client.Delete(t.Context(), p.vm("web")))
	p.gone(&v1.VirtualMachine{}, "web", time.Minute)
	if took := time.Since(begin); took < 9*time.Second || took > 40*time.Second {
		t.Errorf("a deaf guest with a grace period of 10s was gone after %v", took)
	}
}

func TestCloudInitAndEmptyDisk(t *testing.T) {
	p := newPlace(t, "seed")
	p.create(p.vm("web", func(vm *v1.VirtualMachine) {
		s := &vm.Spec.Template.Spec
		s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, disk("scratch"), disk("seed"))
		s.Volumes = append(s.Volumes,
			v1.Volume{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDisk: &v1.EmptyDiskSource{Capacity: quantity("64Mi")}}},
			v1.Volume{Name: "seed", VolumeSource: v1.VolumeSource{CloudInitNoCloud: &v1.CloudInitNoCloudSource{
				UserData: "#cloud-config\nhostname: seeded\npassword: secret1\nruncmd:\n- echo ran-it > /run/proof\n"}}})
	}))
	p.phase("web", v1.Running, 2*time.Minute)
	c, err := theLab.Console(t.Context(), p.ns, "web")
	p.must(err)
	defer c.Close()
	for _, step := range []struct{ send, expect string }{
		{"", "seeded login:"}, {"root\n", "assword"}, {"secret1\n", "# "},
		{"cat /run/proof\n", "ran-it"},
		{"cat /sys/block/vdb/size\n", "131072"}, // sectors of 512 bytes
	} {
		p.must(c.Send(step.send))
		p.must(c.Expect(t.Context(), step.expect, busy*time.Minute))
	}
}
