package subresource

import (
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/kubetest"
)

func dumpVolume(claim string) v1.Volume {
	d := &v1.MemoryDumpVolumeSource{}
	d.ClaimName = claim
	return v1.Volume{Name: "memory", VolumeSource: v1.VolumeSource{MemoryDump: d}}
}

func dumpsOf(ns, name, size string) *k8sv1.PersistentVolumeClaim {
	c := &k8sv1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	c.Spec.AccessModes = []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadWriteOnce}
	c.Spec.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceStorage: resource.MustParse(size)}
	return c
}

// What a caller is answered, in the order in which it is looked at.
func TestRefusalsOfMemoryDumps(t *testing.T) {
	vmi := webVMI(v1.Running)
	guest := resource.MustParse("128Mi")
	vmi.Spec.Domain.Memory, vmi.Spec.Volumes = &v1.Memory{Guest: &guest}, []v1.Volume{dumpVolume("dumps")}
	s := newServer(t, webVM(v1.RunStrategyManual), vmi, dumpsOf("shop", "dumps", "1Gi"), dumpsOf("shop", "small", "64Mi"))
	const web = inShop + "virtualmachines/web/"
	for _, step := range []struct {
		verb, body string
		code       int
		says       string
	}{
		{"removememorydump", "", 409, "there is nothing to remove"},
		{"memorydump", "", 400, "the request's body: Required value"},
		{"memorydump", "[1", 400, "decoding the request's body"},
		{"memorydump", "{}", 400, "claimName: Required value"},
		{"memorydump", "claimName: absent", 404, `persistentvolumeclaim.kubevirt.io "absent" not found`},
		{"memorydump", `{"claimName":"small"}`, 409, "has 64Mi: must have at least 241Mi"},
		{"memorydump?override=true", `{"claimName":"dumps"}`, 400, "override: Forbidden"},
		{"memorydump", `{"claimName":"dumps","phase":"Completed","fileName":"/etc/passwd"}`, 202, ""},
		{"memorydump", `{}`, 409, "is Associating already"},
		{"memorydump", `{"claimName":"small"}`, 409, `memory dumps go to claim "dumps"`},
		{"removememorydump", "", 202, ""},
		{"removememorydump", "", 409, "was asked for already"},
		{"memorydump", `{"claimName":"dumps"}`, 409, "is Dissociating already"},
	} {
		w := ask(s, "PUT", web+step.verb, step.body)
		if says := w.Body.String(); w.Code != step.code || !strings.Contains(strings.ReplaceAll(says, `\"`, `"`), step.says) || w.Code == 202 && says != "" {
			t.Fatalf("%s %s: HTTP %d %s, want %d %s", step.verb, step.body, w.Code, says, step.code, step.says)
		}
		if r := read(t, s).Status.MemoryDumpRequest; r != nil && r.FileName != nil {
			t.Fatalf("the caller has named the file: %+v", r)
		}
	}
	if w := ask(s, "PUT", inShop+"virtualmachines/absent/memorydump", "claimName: dumps"); w.Code != 404 {
		t.Errorf("without a VM: HTTP %d", w.Code)
	}
}

// A dump of a VM that Git owns touches the status alone.
func TestAMemoryDumpOnAnAPIServer(t *testing.T) {
	e := kubetest.Start(t)
	s := onCluster(t, e)
	ns := e.Namespace(t)
	bind(t, e, ns, "kubevirt.io:edit")
	manifest := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"namespace": ns, "name": "web"},
		"spec": map[string]any{"runStrategy": "Always", "template": map[string]any{"spec": map[string]any{
			"domain":  map[string]any{"memory": map[string]any{"guest": "128Mi"}, "devices": map[string]any{}},
			"volumes": []any{map[string]any{"name": "memory", "memoryDump": map[string]any{"claimName": "dumps"}}},
		}}},
	}}
	if err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("kustomize-controller")); err != nil {
		t.Fatal(err)
	}
	vm := &v1.VirtualMachine{}
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(manifest), vm); err != nil {
		t.Fatal(err)
	}
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vm, v1.VirtualMachineGroupVersionKind)}}}
	vmi.Spec = vm.Spec.Template.Spec
	for _, o := range []client.Object{vmi, dumpsOf(ns, "dumps", "1Gi")} {
		if err := e.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	vmi.Status.Phase = v1.Running
	if err := e.Client.Status().Update(t.Context(), vmi); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		verb, body string
		code       int
		phase      v1.MemoryDumpPhase
	}{
		{"memorydump", `{"claimName":"dumps"}`, 202, v1.MemoryDumpAssociating},
		{"memorydump", `{"claimName":"dumps"}`, 409, v1.MemoryDumpAssociating},
		{"removememorydump", "", 202, v1.MemoryDumpDissociating},
	} {
		if w := ask(s, "PUT", at(ns, "virtualmachines", step.verb), step.body); w.Code != step.code {
			t.Fatalf("%s: HTTP %d %s", step.verb, w.Code, w.Body)
		}
		after := &v1.VirtualMachine{}
		if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(vm), after); err != nil {
			t.Fatal(err)
		}
		if r := after.Status.MemoryDumpRequest; after.Generation != vm.Generation || r == nil || r.Phase != step.phase || r.ClaimName != "dumps" {
			t.Errorf("after %s: generation %d, was %d, request %+v", step.verb, after.Generation, vm.Generation, r)
		}
	}
}
