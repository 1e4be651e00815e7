package virtctl

import (
	"encoding/json"
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

const (
	webVMPath  = "GET /apis/kubevirt.io/v1/namespaces/default/virtualmachines/web"
	webVMIPath = "GET /apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/web"
	claimsPath = "POST /api/v1/namespaces/default/persistentvolumeclaims"
)

// dumpable is a VM with a memoryDump volume of the claim; empty: with none.
func dumpable(claim, memory string) *v1.VirtualMachine {
	vm := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	vm.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{}
	spec := &vm.Spec.Template.Spec
	if claim != "" {
		d := &v1.MemoryDumpVolumeSource{}
		d.ClaimName = claim
		spec.Volumes = []v1.Volume{{Name: "memory", VolumeSource: v1.VolumeSource{MemoryDump: d}}}
	}
	if memory != "" {
		guest := resource.MustParse(memory)
		spec.Domain.Memory = &v1.Memory{Guest: &guest}
	}
	return vm
}

func TestMemoryDumpsAreAskedFor(t *testing.T) {
	for line, want := range map[string]struct{ path, body, out string }{
		"virtctl memory-dump get web --claim-name=dumps": {verbPath("default", "web", "memorydump"), `{"claimName":"dumps"}`,
			"A memory dump of VM web was asked for. How it goes:\n  kubectl get vm web -n default -o jsonpath='{.status.memoryDumpRequest}'\n"},
		"virtctl memory-dump get vm/web/shop": {verbPath("shop", "web", "memorydump"), `{"claimName":""}`,
			"A memory dump of VM web was asked for. How it goes:\n  kubectl get vm web -n shop -o jsonpath='{.status.memoryDumpRequest}'\n"},
		"virtctl memory-dump remove web -n shop": {verbPath("shop", "web", "removememorydump"), `{}`, "The claim of VM web takes no more memory dumps\n"},
	} {
		c := newCluster(t)
		c.answers[want.path] = reply(202, nil)
		if got := c.virtctl(t, nil, line); got.code != 0 || got.out != want.out || c.bodies[want.path] != want.body {
			t.Errorf("%s: got %+v, sent %q", line, got, c.bodies[want.path])
		}
	}
}

func TestAClaimForMemoryDumpsIsMade(t *testing.T) {
	expanded := &v1.VirtualMachineInstance{Spec: dumpable("dumps", "1Gi").Spec.Template.Spec}
	for name, tc := range map[string]struct {
		vm    *v1.VirtualMachine
		flags string
		size  string
		mode  k8sv1.PersistentVolumeAccessMode
		class string
	}{
		"plain":              {dumpable("dumps", "128Mi"), "", "241Mi", k8sv1.ReadWriteOnce, ""},
		"of a kind":          {dumpable("dumps", "128Mi"), " --storage-class fast --access-mode ReadWriteMany", "241Mi", k8sv1.ReadWriteMany, "fast"},
		"of an instancetype": {dumpable("dumps", ""), "", "1186Mi", k8sv1.ReadWriteOnce, ""},
	} {
		c := newCluster(t)
		c.answers[webVMPath], c.answers[webVMIPath] = reply(200, tc.vm), reply(200, expanded)
		c.answers[claimsPath], c.answers[verbPath("default", "web", "memorydump")] = reply(201, k8sv1.PersistentVolumeClaim{}), reply(202, nil)
		got := c.virtctl(t, nil, "virtctl memory-dump get web --claim-name dumps --create-claim"+tc.flags)
		claim := k8sv1.PersistentVolumeClaim{}
		if err := json.Unmarshal([]byte(c.bodies[claimsPath]), &claim); err != nil || got.code != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		class := ""
		if claim.Spec.StorageClassName != nil {
			class = *claim.Spec.StorageClassName
		}
		if claim.Name != "dumps" || claim.Spec.Resources.Requests.Storage().String() != tc.size || claim.Spec.AccessModes[0] != tc.mode || class != tc.class || *claim.Spec.VolumeMode != k8sv1.PersistentVolumeFilesystem {
			t.Errorf("%s: got %s", name, c.bodies[claimsPath])
		}
		if !strings.HasPrefix(got.out, "PersistentVolumeClaim dumps was made, of "+tc.size+"\n") {
			t.Errorf("%s: said %q", name, got.out)
		}
	}
}

func TestWhatMemoryDumpRefuses(t *testing.T) {
	file := "web-memory-20260501-120000.memory.dump"
	done, failed := dumpable("dumps", "128Mi"), dumpable("dumps", "128Mi")
	done.Status.MemoryDumpRequest = &v1.VirtualMachineMemoryDumpRequest{ClaimName: "dumps", Phase: v1.MemoryDumpCompleted, FileName: &file}
	failed.Status.MemoryDumpRequest = &v1.VirtualMachineMemoryDumpRequest{ClaimName: "dumps", Phase: v1.MemoryDumpFailed, Message: "no room"}
	plain := dumpable("dumps", "128Mi")
	for line, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		says string
	}{
		"get":                                       {plain, "takes one argument, the virtual machine"},
		"get vmi/web":                               {plain, "want vm/web, not a VirtualMachineInstance"},
		"get web --create-claim":                    {plain, "--create-claim needs --claim-name"},
		"get web --storage-class fast":              {plain, "--storage-class goes with --create-claim"},
		"get web --access-mode ReadWriteMany":       {plain, "--access-mode goes with --create-claim"},
		"get web --access-mode ReadOnlyMany":        {plain, `--access-mode: Invalid value: "ReadOnlyMany": must be one of`},
		"get web --output=x":                        {plain, "can't be downloaded in this version"},
		"get web --claim-name more --create-claim":  {plain, `claimName: Invalid value: "more": must be "dumps"`},
		"get web --claim-name x --create-claim":     {dumpable("", "128Mi"), "add {name: x, memoryDump: {claimName: x}}"},
		"get web --claim-name dumps --create-claim": {plain, "PersistentVolumeClaim default/dumps exists: leave --create-claim out"},
		"download web --output x":                   {done, "The dump is file " + file + " on PersistentVolumeClaim dumps: mount the claim in a Pod, and copy it with\n  kubectl cp default/POD:DIRECTORY/" + file},
		"download vm/web":                           {plain, "VM web has no memory dump: ask for one with\n  virtctl memory-dump get web -n default --claim-name=CLAIM"},
		"download  web":                             {failed, "the last one is Failed: no room"},
	} {
		c := newCluster(t)
		c.answers[webVMPath] = reply(200, tc.vm)
		c.answers[claimsPath] = refuse(409, metav1.StatusReasonAlreadyExists, "exists", nil)
		got := c.virtctl(t, nil, "virtctl memory-dump "+line)
		if _, sent := c.bodies[verbPath("default", "web", "memorydump")]; got.code != 1 || sent || !strings.Contains(got.err, tc.says) {
			t.Errorf("%s: got %+v, want %q", line, got, tc.says)
		}
	}
}

// A claim that isn't there and has the VM's name is not taken for the VM.
func TestAClaimThatIsNotThereIsNamed(t *testing.T) {
	c := newCluster(t)
	const message = `persistentvolumeclaim.kubevirt.io "web" not found`
	c.answers[verbPath("default", "web", "memorydump")] = refuse(404, metav1.StatusReasonNotFound, message,
		&metav1.StatusDetails{Group: "kubevirt.io", Kind: "persistentvolumeclaim", Name: "web"})
	if got := c.virtctl(t, nil, "virtctl memory-dump get web --claim-name web"); got.code != 1 || !strings.Contains(got.err, message) {
		t.Errorf("got %+v", got)
	}
}
