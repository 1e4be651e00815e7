package bundle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const withDisk = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  runStrategy: Always
  template:
    spec:
      domain: {devices: {disks: [{name: data, disk: {bus: virtio}}]}}
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

// A machine that has another name waits for the disk that the old one writes to: the old one goes before the new one is
// healthy. Where no disk is waited for, and where the disk would go along, it goes last, as all else does.
func TestARenamedMachineGetsItsDisk(t *testing.T) {
	own := strings.Replace(withDisk, "spec:\n", "spec:\n  dataVolumeTemplates: [{metadata: {name: data}, spec: {source: {blank: {}}, storage: {resources: {requests: {storage: 1Gi}}}}}]\n", 1)
	for name, tc := range map[string]struct {
		before, after string
		stays         bool
	}{
		"the same claim":            {withDisk, withDisk, false},
		"another claim":             {withDisk, strings.Replace(withDisk, "claimName: data", "claimName: other", 1), true},
		"no claim":                  {machine, machine, true},
		"a claim that is shareable": {strings.Replace(withDisk, "name: data, disk", "name: data, shareable: true, disk", 1), strings.Replace(withDisk, "name: data, disk", "name: data, shareable: true, disk", 1), true},
		"a claim that goes along":   {strings.Replace(own, "persistentVolumeClaim: {claimName: data}", "dataVolume: {name: data}", 1), withDisk, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := start(t)
			x.grant("virtualmachines")
			x.repo.Commit("web.yaml", tc.before)
			x.create(x.bundle)
			x.healthy("web")
			x.repo.Commit("web.yaml", strings.Replace(tc.after, "name: web", "name: www", 1))
			for range 6 {
				x.round()
			}
			if !x.exists(&v1.VirtualMachine{}, "www") {
				t.Fatal("the new one was not made")
			}
			if stays := x.exists(&v1.VirtualMachine{}, "web"); stays != tc.stays {
				t.Errorf("the old one is there: %v, want %v", stays, tc.stays)
			}
			x.healthy("www")
			if x.exists(&v1.VirtualMachine{}, "web") {
				t.Error("the old one is there still")
			}
		})
	}
}

// healthy says in the machine's status, as virt-controller does, that it is as it should be.
func (x *tenant) healthy(name string) {
	x.t.Helper()
	for range 5 {
		x.round()
	}
	vm := &v1.VirtualMachine{}
	if !x.exists(vm, name) {
		x.t.Fatalf("there is no VM %s", name)
	}
	patch := []byte(`{"status":{"observedGeneration":1}}`)
	if err := x.Client.Status().Patch(x.t.Context(), vm, client.RawPatch(types.MergePatchType, patch)); err != nil {
		x.t.Fatal(err)
	}
	x.ready(x.settle(), "main@sha1:"+strings.TrimSpace(x.repo.Git("rev-parse", "HEAD")))
}
