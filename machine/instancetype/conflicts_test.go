package instancetype

import (
	"reflect"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"
)

// everything is an instancetype that sets all it can.
func everything() *v1beta1.VirtualMachineInstancetypeSpec {
	i := small(2, "1Gi")
	i.CPU.Model, i.CPU.DedicatedCPUPlacement, i.CPU.IsolateEmulatorThread = to("host-model"), to(true), to(true)
	i.CPU.NUMA, i.CPU.Realtime = &v1.NUMA{}, &v1.Realtime{}
	i.Memory.Hugepages, i.Memory.MaxGuest = &v1.Hugepages{PageSize: "2Mi"}, to(resource.MustParse("2Gi"))
	i.GPUs = []v1.GPU{{Name: "gpu", DeviceName: "example.com/gpu"}}
	i.HostDevices = []v1.HostDevice{{Name: "nic", DeviceName: "example.com/nic"}}
	i.IOThreadsPolicy = to(v1.IOThreadsPolicyAuto)
	i.IOThreads = &v1.DiskIOThreads{SupplementalPoolThreadCount: to(uint32(2))}
	i.LaunchSecurity = &v1.LaunchSecurity{}
	i.SchedulerName, i.NodeSelector = "mine", map[string]string{"a": "b"}
	i.Annotations = map[string]string{"said": "so"}
	return i
}

// Each row of the contract's table: a template that sets the one field clashes there with an instancetype that sets
// all, and the second column tells whether also with one that sets nothing but what each must, CPUs and memory.
func TestEachClash(t *testing.T) {
	type template = v1.VirtualMachineInstanceTemplateSpec
	quantity := resource.MustParse("1")
	cpu := func(c v1.CPU) func(*template) {
		return func(t *template) { t.Spec.Domain.CPU = &c }
	}
	memory := func(m v1.Memory) func(*template) {
		return func(t *template) { t.Spec.Domain.Memory = &m }
	}
	requests := func(name k8sv1.ResourceName) func(*template) {
		return func(t *template) { t.Spec.Domain.Resources.Requests = k8sv1.ResourceList{name: quantity} }
	}
	limits := func(name k8sv1.ResourceName) func(*template) {
		return func(t *template) { t.Spec.Domain.Resources.Limits = k8sv1.ResourceList{name: quantity} }
	}
	for path, tc := range map[string]struct {
		set    func(*template)
		always bool
	}{
		"spec.template.spec.domain.resources.requests.cpu":    {requests(k8sv1.ResourceCPU), true},
		"spec.template.spec.domain.resources.requests.memory": {requests(k8sv1.ResourceMemory), true},
		"spec.template.spec.domain.resources.limits.cpu":      {limits(k8sv1.ResourceCPU), true},
		"spec.template.spec.domain.resources.limits.memory":   {limits(k8sv1.ResourceMemory), true},
		"spec.template.spec.domain.cpu.sockets":               {cpu(v1.CPU{Sockets: 1}), true},
		"spec.template.spec.domain.cpu.cores":                 {cpu(v1.CPU{Cores: 1}), true},
		"spec.template.spec.domain.cpu.threads":               {cpu(v1.CPU{Threads: 1}), true},
		"spec.template.spec.domain.cpu.model":                 {cpu(v1.CPU{Model: "host-model"}), false},
		"spec.template.spec.domain.cpu.dedicatedCpuPlacement": {cpu(v1.CPU{DedicatedCPUPlacement: true}), false},
		"spec.template.spec.domain.cpu.isolateEmulatorThread": {cpu(v1.CPU{IsolateEmulatorThread: true}), false},
		"spec.template.spec.domain.cpu.numa":                  {cpu(v1.CPU{NUMA: &v1.NUMA{}}), false},
		"spec.template.spec.domain.cpu.realtime":              {cpu(v1.CPU{Realtime: &v1.Realtime{}}), false},
		"spec.template.spec.domain.memory.guest":              {memory(v1.Memory{Guest: &quantity, Hugepages: &v1.Hugepages{}, MaxGuest: &quantity}), true},
		"spec.template.spec.domain.memory.hugepages":          {memory(v1.Memory{Hugepages: &v1.Hugepages{}, MaxGuest: &quantity}), false},
		"spec.template.spec.domain.memory.maxGuest":           {memory(v1.Memory{MaxGuest: &quantity}), false},
		"spec.template.spec.domain.devices.gpus":              {func(t *template) { t.Spec.Domain.Devices.GPUs = []v1.GPU{{Name: "other"}} }, false},
		"spec.template.spec.domain.devices.hostDevices":       {func(t *template) { t.Spec.Domain.Devices.HostDevices = []v1.HostDevice{{Name: "other"}} }, false},
		"spec.template.spec.domain.ioThreadsPolicy":           {func(t *template) { t.Spec.Domain.IOThreadsPolicy = to(v1.IOThreadsPolicyShared) }, false},
		"spec.template.spec.domain.ioThreads.supplementalPoolThreadCount": {func(t *template) {
			t.Spec.Domain.IOThreads = &v1.DiskIOThreads{SupplementalPoolThreadCount: to(uint32(1))}
		}, false},
		"spec.template.spec.domain.launchSecurity": {func(t *template) { t.Spec.Domain.LaunchSecurity = &v1.LaunchSecurity{} }, false},
		"spec.template.spec.schedulerName":         {func(t *template) { t.Spec.SchedulerName = "other" }, false},
		"spec.template.spec.nodeSelector":          {func(t *template) { t.Spec.NodeSelector = map[string]string{"c": "d"} }, false},
		"spec.template.metadata.annotations[said]": {func(t *template) { t.ObjectMeta.Annotations = map[string]string{"said": "otherwise"} }, false},
	} {
		with := machine(tc.set).Spec.Template
		if got := fields(Conflicts(with, everything())); !reflect.DeepEqual(got, []string{path}) {
			t.Errorf("%s clashes at %v", path, got)
		}
		if got := len(Conflicts(with, small(1, "1Gi"))) > 0; got != tc.always {
			t.Errorf("%s clashes with CPUs and memory alone: %t, want %t", path, got, tc.always)
		}
	}
}

func TestWhatClashesWithNothing(t *testing.T) {
	type template = v1.VirtualMachineInstanceTemplateSpec
	for name, harmless := range map[string]func(*template){
		"the same annotation": func(t *template) { t.ObjectMeta.Annotations = map[string]string{"said": "so"} },
		"maxSockets":          func(t *template) { t.Spec.Domain.CPU = &v1.CPU{MaxSockets: 4} },
		"CPU features":        func(t *template) { t.Spec.Domain.CPU = &v1.CPU{Features: []v1.CPUFeature{{Name: "vmx"}}} },
		"other resources": func(t *template) {
			t.Spec.Domain.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceEphemeralStorage: resource.MustParse("1")}
		},
	} {
		if got := Conflicts(machine(harmless).Spec.Template, everything()); len(got) > 0 {
			t.Errorf("%s clashes: %v", name, got)
		}
	}
}
