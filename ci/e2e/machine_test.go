//go:build e2e

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// withMachine adds to a VM's domain, written as in its spec.
func (p place) withMachine(domain string) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) {
		p.must(yaml.UnmarshalStrict([]byte(domain), &vm.Spec.Template.Spec.Domain))
	}
}

// The guest reads who made its machine, and finds its licence; the VM waits for a Secret that isn't there yet.
func TestWhatAGuestReadsOfItsMachine(t *testing.T) {
	p := newPlace(t, "machine")
	p.create(p.vm("web", p.withMachine(`{cpu: {cores: 2}, chassis: {manufacturer: Example, asset: rack-7},
		firmware: {serial: s-0001, acpi: {slicNameRef: licence}}}`), func(vm *v1.VirtualMachine) {
		v := v1.Volume{Name: "licence"}
		v.Secret = &v1.SecretVolumeSource{SecretName: "licence"}
		vm.Spec.Template.Spec.Volumes = append(vm.Spec.Template.Spec.Volumes, v)
	}))
	p.unsynchronized("web", "", "spec.volumes[1].secret.secretName", "licence")
	const table = "SLIC\x2c\x00\x00\x00\x01\x00EXMPLEEXAMPLE1\x01\x00\x00\x00EXMP\x01\x00\x00\x00unbought"
	p.secret("licence", map[string]string{"slic.bin": table})
	p.phase("web", v1.Running, 3*time.Minute)
	c := p.shell("web")
	p.asked(c, "echo CPUS $(nproc)", "CPUS 2")
	p.asked(c, "cat /sys/class/dmi/id/sys_v*", "KubeVirt")
	p.asked(c, "cat /sys/class/dmi/id/product_ser*", "s-0001")
	p.asked(c, "cat /sys/class/dmi/id/chassis_asset*", "rack-7")
	p.asked(c, "tail -c 8 /sys/firmware/acpi/tables/SL*", "unbought")
}

// No node of the dev cluster gives CPUs away, and the VM says so; its Pod would have had them.
func TestCPUsThatNoNodeGives(t *testing.T) {
	p := newPlace(t, "own-cpus")
	p.create(p.vm("alone", p.withMachine("{cpu: {cores: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true}}")))
	p.status("alone", v1.VirtualMachineStatusUnschedulable, time.Minute)
	pods := &corev1.PodList{}
	p.must(theLab.Client.List(t.Context(), pods, client.InNamespace(p.ns), client.MatchingLabels{v1.AppLabel: "virt-launcher"}))
	if len(pods.Items) != 1 {
		t.Fatalf("%d Pods", len(pods.Items))
	}
	pod := pods.Items[0]
	if cpus := pod.Spec.Containers[0].Resources.Limits.Cpu(); cpus.String() != "3" || pod.Status.QOSClass != corev1.PodQOSGuaranteed || pod.Spec.NodeSelector[v1.CPUManager] != "true" {
		t.Errorf("the Pod has limit %s, is %s and selects %v", cpus, pod.Status.QOSClass, pod.Spec.NodeSelector)
	}
	nodes := &corev1.NodeList{}
	p.must(theLab.Client.List(t.Context(), nodes))
	for _, n := range nodes.Items {
		if n.Labels[v1.CPUManager] != "false" || n.Labels[v1.DeprecatedCPUManager] != "false" {
			t.Errorf("node %s has labels %v", n.Name, n.Labels)
		}
	}
}
