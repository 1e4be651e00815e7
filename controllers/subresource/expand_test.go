package subresource

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	api "kubevirt.io/api/instancetype"
	instancetype "kubevirt.io/api/instancetype/v1beta1"
)

// pair is an instancetype of two CPUs and 1Gi.
func pair() *instancetype.VirtualMachineInstancetype {
	out := &instancetype.VirtualMachineInstancetype{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pair", UID: "pair-1"}}
	out.Spec.CPU.Guest, out.Spec.Memory.Guest = 2, resource.MustParse("1Gi")
	return out
}

func pairVM() *v1.VirtualMachine {
	vm := webVM(v1.RunStrategyHalted)
	vm.Spec.Instancetype = &v1.InstancetypeMatcher{Kind: "VirtualMachineInstancetype", Name: "pair"}
	vm.Spec.Template.Spec.Volumes = []v1.Volume{{Name: "root", VolumeSource: v1.VolumeSource{ContainerDisk: &v1.ContainerDiskSource{Image: "localhost/tiny:1"}}}}
	return vm
}

// expanded asks for a VM and returns it.
func expanded(t *testing.T, s *Server, method, path, body string) *v1.VirtualMachine {
	t.Helper()
	w := ask(s, method, inShop+path, body)
	vm := &v1.VirtualMachine{}
	if err := json.Unmarshal(w.Body.Bytes(), vm); w.Code != 200 || err != nil || vm.Kind != "VirtualMachine" || vm.APIVersion != "kubevirt.io/v1" {
		t.Fatalf("HTTP %d %s, want a VirtualMachine: %v", w.Code, w.Body, err)
	}
	return vm
}

func whole(t *testing.T, vm *v1.VirtualMachine) {
	t.Helper()
	d := vm.Spec.Template.Spec.Domain
	if vm.Spec.Instancetype != nil || vm.Status.InstancetypeRef != nil || vm.ManagedFields != nil {
		t.Errorf("refers to %+v, %+v, %+v", vm.Spec.Instancetype, vm.Status.InstancetypeRef, vm.ManagedFields)
	}
	if d.CPU == nil || d.CPU.Sockets != 2 || d.Memory == nil || d.Memory.Guest.String() != "1Gi" {
		t.Errorf("CPU %+v, memory %+v", d.CPU, d.Memory)
	}
	if len(d.Devices.Disks) != 1 || len(d.Devices.Interfaces) != 1 || d.Firmware == nil || d.Firmware.UUID == "" {
		t.Errorf("defaults are missing: %+v, firmware %+v", d.Devices, d.Firmware)
	}
}

func TestExpandSpecSaysTheWholeMachine(t *testing.T) {
	s := newServer(t, pair(), pairVM())
	before := read(t, s)
	full := expanded(t, s, "GET", "virtualmachines/web/expand-spec", "")
	whole(t, full)
	body, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	again := expanded(t, s, "PUT", "expand-vm-spec", string(body))
	if diff := cmp.Diff(full.Spec, again.Spec); diff != "" {
		t.Errorf("expanded twice (-once +twice):\n%s", diff)
	}
	if diff := cmp.Diff(before, read(t, s)); diff != "" {
		t.Errorf("the stored VM was written (-before +after):\n%s", diff)
	}
}

func TestExpandVMSpecNeedsNoVM(t *testing.T) {
	s := newServer(t, pair())
	whole(t, expanded(t, s, "PUT", "expand-vm-spec", `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, namespace: shop}
spec:
  runStrategy: Always
  instancetype: {name: pair, kind: virtualmachineinstancetype}
  template: {spec: {domain: {devices: {}}, volumes: [{name: root, containerDisk: {image: localhost/tiny:1}}]}}
`))
}

func TestExpandSpecInfers(t *testing.T) {
	vm := pairVM()
	vm.Spec.Instancetype = &v1.InstancetypeMatcher{InferFromVolume: "root"}
	vm.Spec.Template.Spec.Volumes[0].VolumeSource = v1.VolumeSource{DataVolume: &v1.DataVolumeSource{Name: "web-root"}}
	pvc := &k8sv1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-root", Labels: map[string]string{
		api.DefaultInstancetypeLabel: "pair", api.DefaultInstancetypeKindLabel: "VirtualMachineInstancetype"}}}
	whole(t, expanded(t, newServer(t, pair(), pvc, vm), "GET", "virtualmachines/web/expand-spec", ""))
}

func TestWhatCantBeExpanded(t *testing.T) {
	const head = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"web","namespace":"shop"},"spec":`
	s := newServer(t, pair(), pairVM())
	lost := newServer(t, pairVM())
	put := inShop + "expand-vm-spec"
	for name, tc := range map[string]struct {
		server        *Server
		method, path  string
		body, message string
		code          int
		cause         string
	}{
		"no VM":           {s, "GET", inShop + "virtualmachines/wbe/expand-spec", "", `"wbe" not found`, 404, ""},
		"no instancetype": {lost, "GET", inShop + "virtualmachines/web/expand-spec", "", "spec.instancetype: there is no VirtualMachineInstancetype shop/pair", 500, ""},
		"no JSON":         {s, "PUT", put, "{", "decoding the request's body", 400, ""},
		"nothing":         {s, "PUT", put, "", "Object is not a valid VirtualMachine", 400, "kind: Unsupported value"},
		"another kind":    {s, "PUT", put, `{"apiVersion":"v1","kind":"Pod"}`, "Object is not a valid VirtualMachine", 400, "kind"},
		"unknown field":   {s, "PUT", put, head + `{"template":{"spec":{"domain":{"cpus":2}}}}}`, "Object is not a valid VirtualMachine", 400, `spec.template.spec: unknown field "domain.cpus"`},
		"wrong type":      {s, "PUT", put, head + `{"template":{"spec":{"domain":{"cpu":{"cores":"two"}}}}}}`, "Object is not a valid VirtualMachine", 400, "cores"},
		"no template":     {s, "PUT", put, head + `{}}`, "Object is not a valid VirtualMachine", 400, "spec.template: Required"},
		"elsewhere":       {s, "PUT", strings.Replace(put, "shop", "mall", 1), head + `{"template":{}}}`, `metadata.namespace: Invalid value: "shop": must be mall`, 400, ""},
		"two names":       {s, "PUT", put, head + `{"template":{},"instancetype":{"name":"pair","inferFromVolume":"root"}}}`, "spec.instancetype.name", 400, ""},
		"conflict": {s, "PUT", put, head + `{"template":{"spec":{"domain":{"cpu":{"cores":2}}}},"instancetype":{"name":"pair","kind":"VirtualMachineInstancetype"}}}`,
			"spec.template.spec.domain.cpu.cores", 400, ""},
		"too large": {s, "PUT", put, strings.Repeat(" ", maxMachine+1), "too large", 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(tc.server, tc.method, tc.path, tc.body)
			got := statusOf(t, w)
			if w.Code != tc.code || !strings.Contains(got.Message, tc.message) {
				t.Errorf("HTTP %d %q, want %d %q", w.Code, got.Message, tc.code, tc.message)
			}
			if tc.cause != "" && (len(got.Details.Causes) == 0 || !strings.Contains(got.Details.Causes[0].Message, tc.cause)) {
				t.Errorf("details %+v, want a cause with %q", got.Details, tc.cause)
			}
		})
	}
}
