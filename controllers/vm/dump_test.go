package vm_test

import (
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/machine/memorydump"
)

// A request for a memory dump reaches the VMI, what the node agent answers comes back, the claim gets the dump's name,
// and the end of the association leaves nothing of it in either status.
func TestAMemoryDumpAndItsEnd(t *testing.T) {
	env, ns := start(t)
	source := &v1.MemoryDumpVolumeSource{}
	source.ClaimName = "claim"
	web, guest := early(ns, "web"), resource.MustParse("64Mi")
	web.Spec.Instancetype = nil
	web.Spec.Template.Spec.Domain.Memory = &v1.Memory{Guest: &guest}
	web.Spec.Template.Spec.Volumes = append(web.Spec.Template.Spec.Volumes, v1.Volume{Name: "memory", VolumeSource: v1.VolumeSource{MemoryDump: source}})
	claim := &k8sv1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "claim"}}
	claim.Spec.AccessModes = []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadWriteOnce}
	claim.Spec.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceStorage: resource.MustParse("1Gi")}
	put(t, env.Client, claim)
	put(t, env.Client, web)
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	until(t, env.Client, vmi, func() bool { return vmi.UID != "" })
	agent := apply.Applier{Client: env.Client, Manager: "virt-handler"}
	say := func(st v1.VirtualMachineInstanceStatus) {
		t.Helper()
		st.Phase = v1.Running
		if err := agent.Status(t.Context(), vmi, &st); err != nil {
			t.Fatal(err)
		}
	}
	say(v1.VirtualMachineInstanceStatus{})
	until(t, env.Client, web, func() bool { return web.Status.PrintableStatus == v1.VirtualMachineStatusRunning })
	patch := func(body string) {
		t.Helper()
		if err := env.Client.Status().Patch(t.Context(), web.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner("virt-api")); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"status":{"memoryDumpRequest":{"claimName":"claim","phase":"Associating"}}}`)
	until(t, env.Client, vmi, func() bool { return memorydump.Of(vmi).Asked != nil && memorydump.Of(vmi).Claim == "claim" })
	file, end := memorydump.File("web", "memory", memorydump.Of(vmi).Asked.Time), metav1.Now().Rfc3339Copy()
	say(v1.VirtualMachineInstanceStatus{VolumeStatus: []v1.VolumeStatus{{Name: "memory", Phase: v1.MemoryDumpVolumeCompleted,
		MemoryDumpVolume: &v1.DomainMemoryDumpInfo{TargetFileName: file, EndTimestamp: &end}}}})
	until(t, env.Client, web, func() bool {
		r := web.Status.MemoryDumpRequest
		return r != nil && r.Phase == v1.MemoryDumpCompleted && *r.FileName == file && r.EndTimestamp.Equal(&end) && r.StartTimestamp != nil
	})
	until(t, env.Client, claim, func() bool { return claim.Annotations[v1.PVCMemoryDumpAnnotation] == file })

	patch(`{"status":{"memoryDumpRequest":{"phase":"Dissociating","remove":true}}}`)
	until(t, env.Client, web, func() bool { return web.Status.MemoryDumpRequest == nil })
	until(t, env.Client, vmi, func() bool { return memorydump.Of(vmi).Asked == nil })
	say(v1.VirtualMachineInstanceStatus{}) // nobody asks, so the node agent says nothing any more
	until(t, env.Client, vmi, func() bool { return len(vmi.Status.VolumeStatus) == 0 })
	if web.Generation != 1 {
		t.Errorf("the VM's spec was changed: generation %d", web.Generation)
	}
}
