package vm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	api "kubevirt.io/api/instancetype"
	"kubevirt.io/api/instancetype/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"virtstack.io/virtstack/controllers/vm"
	"virtstack.io/virtstack/kube/kubetest"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) { kubetest.Main(m) }

// start runs the controller against a real API server.
func start(t *testing.T) (*kubetest.Env, string) {
	t.Helper()
	env := kubetest.Start(t)
	again := true // each test has a controller of the same name
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: env.Client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &again},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &vm.Controller{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: events.NewFakeRecorder(1000)}
	if err := c.Setup(mgr, 2); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return env, env.Namespace(t)
}

// until reads object until it is as wanted.
func until(t *testing.T, c client.Client, object client.Object, wanted func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if err == nil && wanted() {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			state, _ := json.Marshal(object)
			t.Fatalf("not as wanted after %s: %v: %s", patience, err, state)
		}
	}
}

func put(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object, client.FieldOwner("git")); err != nil {
		t.Fatal(err)
	}
}

func small(ns, name string, vcpus uint32) *v1beta1.VirtualMachineInstancetype {
	return &v1beta1.VirtualMachineInstancetype{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1beta1.VirtualMachineInstancetypeSpec{
			CPU: v1beta1.CPUInstancetype{Guest: vcpus}, Memory: v1beta1.MemoryInstancetype{Guest: resource.MustParse("128Mi")},
		},
	}
}

func early(ns, name string) *v1.VirtualMachine {
	always := v1.RunStrategyAlways
	out := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	out.Spec = v1.VirtualMachineSpec{
		RunStrategy:  &always,
		Instancetype: &v1.InstancetypeMatcher{Kind: "VirtualMachineInstancetype", Name: "small"},
		Template:     &v1.VirtualMachineInstanceTemplateSpec{},
	}
	out.Spec.Template.Spec.Volumes = []v1.Volume{{Name: "root", VolumeSource: v1.VolumeSource{ContainerDisk: &v1.ContainerDiskSource{Image: "localhost/tiny:1"}}}}
	return out
}

func failure(vm *v1.VirtualMachine) string {
	for _, c := range vm.Status.Conditions {
		if c.Type == v1.VirtualMachineFailure {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

func TestAVMStartsOnceItsInstancetypeAndPreferenceCome(t *testing.T) {
	env, ns := start(t)
	machine := early(ns, "early")
	machine.Spec.Preference = &v1.PreferenceMatcher{Kind: "VirtualMachinePreference", Name: "plain"}
	put(t, env.Client, machine)
	until(t, env.Client, machine, func() bool {
		return strings.HasPrefix(failure(machine), "FailedFindInstancetype") && strings.Contains(failure(machine), ns+"/small")
	})
	put(t, env.Client, small(ns, "small", 3))
	until(t, env.Client, machine, func() bool { return strings.HasPrefix(failure(machine), "FailedFindPreference") })
	put(t, env.Client, &v1beta1.VirtualMachinePreference{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "plain"},
		Spec:       v1beta1.VirtualMachinePreferenceSpec{Devices: &v1beta1.DevicePreferences{PreferredDiskBus: v1.DiskBusVirtio}},
	})
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "early"}}
	until(t, env.Client, vmi, func() bool { return true })
	d := vmi.Spec.Domain
	if d.CPU.Sockets != 3 || d.Memory.Guest.String() != "128Mi" || d.Devices.Disks[0].Disk.Bus != v1.DiskBusVirtio {
		t.Errorf("got cpu %+v, memory %+v, disks %+v", d.CPU, d.Memory, d.Devices.Disks)
	}
	if vmi.Annotations[v1.InstancetypeAnnotation] != "small" || vmi.Annotations[v1.PreferenceAnnotation] != "plain" {
		t.Errorf("got annotations %v", vmi.Annotations)
	}
	until(t, env.Client, machine, func() bool { return machine.Status.InstancetypeRef != nil && failure(machine) == "" })
	if machine.Generation != 1 {
		t.Errorf("the spec was written: generation %d", machine.Generation)
	}
}

func TestAVMKeepsItsRevision(t *testing.T) {
	env, ns := start(t)
	kind := small(ns, "small", 1)
	put(t, env.Client, kind)
	machine := early(ns, "keeps")
	halted := v1.RunStrategyHalted
	machine.Spec.RunStrategy = &halted
	put(t, env.Client, machine)
	until(t, env.Client, machine, func() bool { return machine.Status.InstancetypeRef != nil })
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: machine.Status.InstancetypeRef.ControllerRevisionRef.Name}}
	until(t, env.Client, revision, func() bool { return metav1.IsControlledBy(revision, machine) })
	if err := env.Client.Delete(t.Context(), kind); err != nil {
		t.Fatal(err)
	}
	always := []byte(`{"spec":{"runStrategy":"Always"}}`)
	if err := env.Client.Patch(t.Context(), machine, client.RawPatch("application/merge-patch+json", always)); err != nil {
		t.Fatal(err)
	}
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "keeps"}}
	until(t, env.Client, vmi, func() bool { return vmi.Spec.Domain.CPU.Sockets == 1 })
}

func TestAConflictIsAConditionUntilItIsGone(t *testing.T) {
	env, ns := start(t)
	put(t, env.Client, small(ns, "small", 1))
	machine := early(ns, "torn")
	machine.Spec.Template.Spec.Domain.CPU = &v1.CPU{Cores: 2}
	put(t, env.Client, machine)
	until(t, env.Client, machine, func() bool { return strings.Contains(failure(machine), "spec.template.spec.domain.cpu.cores") })
	fix := []byte(`{"spec":{"template":{"spec":{"domain":{"cpu":null}}}}}`)
	if err := env.Client.Patch(t.Context(), machine, client.RawPatch("application/merge-patch+json", fix)); err != nil {
		t.Fatal(err)
	}
	until(t, env.Client, machine, func() bool { return machine.Status.Created && failure(machine) == "" })
}

// A cluster may lack the kinds of DataVolumes: then the claim of the name counts. What was
// inferred is recorded in the VM's status, never in its spec.
func TestAnInstancetypeIsInferredFromAVolume(t *testing.T) {
	env, ns := start(t)
	put(t, env.Client, small(ns, "small", 3))
	labels := map[string]string{api.DefaultInstancetypeLabel: "small", api.DefaultInstancetypeKindLabel: "VirtualMachineInstancetype"}
	claim := &k8sv1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data", Labels: labels}}
	claim.Spec.AccessModes = []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadWriteOnce}
	claim.Spec.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceStorage: resource.MustParse("1Gi")}
	put(t, env.Client, claim)
	machine := early(ns, "inferred")
	machine.Spec.Instancetype = &v1.InstancetypeMatcher{InferFromVolume: "root"}
	machine.Spec.Template.Spec.Volumes[0].VolumeSource = v1.VolumeSource{DataVolume: &v1.DataVolumeSource{Name: "data"}}
	put(t, env.Client, machine)
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "inferred"}}
	until(t, env.Client, vmi, func() bool { return vmi.Spec.Domain.CPU != nil && vmi.Spec.Domain.CPU.Sockets == 3 })
	until(t, env.Client, machine, func() bool { return machine.Status.InstancetypeRef != nil })
	if ref := machine.Status.InstancetypeRef; ref.Name != "small" || ref.InferFromVolume != "root" || ref.ControllerRevisionRef == nil {
		t.Errorf("recorded %+v", ref)
	}
	if machine.Generation != 1 {
		t.Errorf("the spec was written: generation %d", machine.Generation)
	}
}

// A volume that says nothing leaves the VM as if it named nothing, if that is what its policy says; else it waits.
func TestAVolumeThatSaysNothing(t *testing.T) {
	env, ns := start(t)
	for name, policy := range map[string]v1.InferFromVolumeFailurePolicy{"ignores": v1.IgnoreInferFromVolumeFailure, "rejects": v1.RejectInferFromVolumeFailure} {
		machine := early(ns, name)
		machine.Spec.Instancetype = &v1.InstancetypeMatcher{InferFromVolume: "root", InferFromVolumeFailurePolicy: &policy}
		machine.Spec.Template.Spec.Domain.CPU = &v1.CPU{Cores: 2}
		put(t, env.Client, machine)
	}
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "ignores"}}
	until(t, env.Client, vmi, func() bool { return vmi.Spec.Domain.CPU.Cores == 2 })
	machine := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "rejects"}}
	until(t, env.Client, machine, func() bool {
		return strings.HasPrefix(failure(machine), `FailedFindInstancetype: spec.instancetype: volume "root": nothing to infer from`)
	})
}
