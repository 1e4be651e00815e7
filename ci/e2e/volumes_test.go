//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// longKey is a name that plain ISO 9660 would cut and fold.
const longKey = "Application.Settings-For.Production_Environment.YAML"

func (p place) claim(name, size string) {
	p.t.Helper()
	p.create(&k8sv1.PersistentVolumeClaim{ObjectMeta: objectMeta(p.ns, name), Spec: k8sv1.PersistentVolumeClaimSpec{
		AccessModes: []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadWriteOnce},
		Resources:   k8sv1.VolumeResourceRequirements{Requests: k8sv1.ResourceList{k8sv1.ResourceStorage: quantity(size)}},
	}})
}

func with(name string, source v1.VolumeSource) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) {
		s := &vm.Spec.Template.Spec
		s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, disk(name))
		s.Volumes = append(s.Volumes, v1.Volume{Name: name, VolumeSource: source})
	}
}

func claimed(name string) v1.VolumeSource {
	return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{
		PersistentVolumeClaimVolumeSource: k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
}

// unsynchronized waits until the VMI says why it isn't as its owner wants it: by that reason, if one is given, and with
// all the texts.
func (p place) unsynchronized(name, reason string, texts ...string) *v1.VirtualMachineInstance {
	p.t.Helper()
	vmi := &v1.VirtualMachineInstance{}
	p.must(lab.Until(p.t.Context(), 2*time.Minute, fmt.Sprintf("VMI %s to say %q", name, texts), func(ctx context.Context) (bool, string, error) {
		*vmi = v1.VirtualMachineInstance{}
		err := theLab.Client.Get(ctx, p.key(name), vmi)
		for _, c := range vmi.Status.Conditions {
			if c.Type == v1.VirtualMachineInstanceSynchronized && c.Status == k8sv1.ConditionFalse && (reason == "" || c.Reason == reason) && containsAll(c.Message, texts) {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("%+v", vmi.Status.Conditions), err
	}))
	return vmi
}

// does is a Pod that runs a script.
func (p place) does(name, script string) *k8sv1.Pod {
	return &k8sv1.Pod{ObjectMeta: objectMeta(p.ns, name), Spec: k8sv1.PodSpec{
		RestartPolicy: k8sv1.RestartPolicyNever,
		Containers: []k8sv1.Container{{
			Name: "sh", Image: "localhost/busybox:1", ImagePullPolicy: k8sv1.PullNever, Command: []string{"sh", "-c", script},
		}},
	}}
}

// ended waits until a Pod has done its work.
func (p place) ended(pod string) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), 2*time.Minute, "Pod "+pod+" to succeed", func(ctx context.Context) (bool, string, error) {
		found := &k8sv1.Pod{}
		err := theLab.Client.Get(ctx, p.key(pod), found)
		return found.Status.Phase == k8sv1.PodSucceeded, string(found.Status.Phase), err
	}))
}

// A VM that is there before its claim waits for it. The image on the claim is whole MiB with a reserve (case 18), can be
// written to its end, and what is on it outlives the VMI. A ConfigMap comes with its keys as they are.
func TestClaimAndConfigMap(t *testing.T) {
	p := newPlace(t, "volumes")
	config := v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: k8sv1.LocalObjectReference{Name: "settings"}, VolumeLabel: "Settings"}}
	p.create(&k8sv1.ConfigMap{ObjectMeta: objectMeta(p.ns, "settings"), Data: map[string]string{longKey: "colour: grün\r\n"}})
	p.create(p.vm("web", with("data", claimed("data")), with("config", config)))
	p.unsynchronized("web", "FailedPvcNotFound", p.ns+"/data")
	p.claim("data", "70M")
	first := p.phase("web", v1.Running, 2*time.Minute)
	c := p.shell("web")
	p.asked(c, "cat /sys/block/vdb/size", "129024") // 63 MiB in sectors of 512 bytes
	p.asked(c, "dd if=/dev/zero of=/dev/vdb bs=1M count=63 conv=fsync && echo fil''led", "filled")
	p.asked(c, "echo kept-ov''er | dd of=/dev/vdb conv=sync,fsync && echo writ''ten", "written")
	p.asked(c, "mkdir -p /m && mount -t iso9660 -o ro /dev/vdc /m && ls /m", longKey)
	p.asked(c, "od -c /m/"+longKey+" | head -3", `\r  \n`)
	_, err := theLab.Run(t.Context(), "virtctl", "restart", "-n", p.ns, "web")
	p.must(err)
	p.another("web", first.UID, v1.Running, 3*time.Minute)
	p.asked(p.shell("web"), "head -c 9 /dev/vdb", "kept-over")
}

// baits are what stands on a claim in place of an image, each with what makes it and what tells that nobody has touched it.
var baits = map[string]struct{ make, untouched string }{
	"link":      {"ln -s /etc/passwd disk.img", "[ -L disk.img ]"},
	"sibling":   {"echo secret >other && chmod 600 other && ln -s other disk.img", `[ "$(cat other)" = secret ] && [ $(stat -c %u other) = 0 ]`},
	"chain":     {"ln -s ../../../../../../etc/shadow far && ln -s far disk.img", "[ -L disk.img ] && [ -L far ]"},
	"directory": {"mkdir disk.img", "[ -d disk.img ] && [ -z \"$(ls disk.img)\" ]"},
	"fifo":      {"mkfifo disk.img", "[ -p disk.img ] && [ $(stat -c %u disk.img) = 0 ]"},
	"device":    {"mknod disk.img b 7 0", "[ -b disk.img ] && [ $(stat -c %u disk.img) = 0 ]"},
}

// on does something in each bait's claim.
func (p place) on(pod string, command func(bait string) string) {
	p.t.Helper()
	script, made := "", p.does(pod, "")
	for _, bait := range slices.Sorted(maps.Keys(baits)) {
		script += fmt.Sprintf("cd /%s && %s || exit 1\n", bait, command(bait))
		made.Spec.Containers[0].VolumeMounts = append(made.Spec.Containers[0].VolumeMounts, k8sv1.VolumeMount{Name: bait, MountPath: "/" + bait})
		made.Spec.Volumes = append(made.Spec.Volumes, k8sv1.Volume{Name: bait, VolumeSource: k8sv1.VolumeSource{
			PersistentVolumeClaim: &k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: bait},
		}})
	}
	made.Spec.Containers[0].Command[2] = script
	p.create(made)
	p.ended(pod)
}

// Case 48 and S8, kubevirt's GHSA-qw6q-3pgr-5cwq: what isn't a plain file starts no guest, its VMI says which volume it is and why, and
// neither it nor what it leads to is opened, made anyone else's or filled.
func TestNoImageOnAClaim(t *testing.T) {
	p := newPlace(t, "bait")
	for bait := range baits {
		p.claim(bait, "64Mi")
	}
	p.on("set-baits", func(bait string) string { return baits[bait].make })
	for bait := range baits {
		p.create(p.vm(bait, with("d", claimed(bait))))
	}
	for bait := range baits {
		vmi := p.unsynchronized(bait, "", "spec.volumes[1].persistentVolumeClaim.claimName", "not a regular file")
		if vmi.Status.Phase == v1.Running {
			t.Errorf("%s: the guest was started", bait)
		}
	}
	p.on("look-at-baits", func(bait string) string { return baits[bait].untouched })
}
