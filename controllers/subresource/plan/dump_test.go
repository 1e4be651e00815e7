package plan

import (
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

// dumpsTo adds a memoryDump volume.
func dumpsTo(spec *v1.VirtualMachineInstanceSpec, claim string) {
	d := &v1.MemoryDumpVolumeSource{}
	d.ClaimName = claim
	spec.Volumes = append(spec.Volumes, v1.Volume{Name: "memory", VolumeSource: v1.VolumeSource{MemoryDump: d}})
}

// dumpable is a running VMI of 128 MiB that was started with a volume for dumps.
func dumpable(claim string) *v1.VirtualMachineInstance {
	out := vmi(v1.Running)
	guest := resource.MustParse("128Mi")
	out.Spec.Domain.Memory = &v1.Memory{Guest: &guest}
	if claim != "" {
		dumpsTo(&out.Spec, claim)
	}
	return out
}

func dumped(claim string, phase v1.MemoryDumpPhase) vmOption {
	return func(vm *v1.VirtualMachine) {
		file := "web.memory.dump"
		vm.Status.MemoryDumpRequest = &v1.VirtualMachineMemoryDumpRequest{ClaimName: claim, Phase: phase, FileName: &file, Remove: phase == v1.MemoryDumpDissociating}
	}
}

func templated(claim string) vmOption {
	return func(vm *v1.VirtualMachine) {
		vm.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{}
		dumpsTo(&vm.Spec.Template.Spec, claim)
	}
}

func claim(size string, change ...func(*k8sv1.PersistentVolumeClaimSpec)) *k8sv1.PersistentVolumeClaim {
	c := &k8sv1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "dumps"}}
	c.Spec.AccessModes = []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadWriteOnce}
	c.Spec.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceStorage: resource.MustParse(size)}
	for _, f := range change {
		f(&c.Spec)
	}
	return c
}

func TestClaimsOfMemoryDumps(t *testing.T) {
	always := vm(v1.RunStrategyAlways)
	deleting := dumpable("dumps")
	deleting.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		vm    *v1.VirtualMachine
		vmi   *v1.VirtualMachineInstance
		asked string
		want  string
	}{
		"named":            {always, dumpable("dumps"), "dumps", "dumps"},
		"as before":        {vm(v1.RunStrategyAlways, dumped("dumps", v1.MemoryDumpCompleted)), dumpable("dumps"), "", "dumps"},
		"as before, named": {vm(v1.RunStrategyAlways, dumped("dumps", v1.MemoryDumpFailed)), dumpable("dumps"), "dumps", "dumps"},
		"none":             {always, dumpable("dumps"), "", "Bad Request: claimName: Required value: must be the PersistentVolumeClaim that the first memory dump goes to"},
		"no name":          {always, dumpable("dumps"), "../x", `Bad Request: claimName: Invalid value: "../x": must be the name of a PersistentVolumeClaim`},
		"another": {vm(v1.RunStrategyAlways, dumped("dumps", v1.MemoryDumpCompleted)), nil, "more",
			`Conflict: claimName: Invalid value: "more": memory dumps go to claim "dumps": end that with removememorydump first, or leave claimName out`},
		"no VMI":        {always, nil, "dumps", `Not Found: virtualmachineinstance.kubevirt.io "web" not found`},
		"a namesake":    {always, strangers(v1.Running), "dumps", `Not Found: virtualmachineinstance.kubevirt.io "web" not found`},
		"starting":      {always, vmi(v1.Scheduled), "dumps", "Conflict: VM is not running"},
		"done":          {always, vmi(v1.Succeeded), "dumps", "Conflict: VM is not running"},
		"shutting down": {always, deleting, "dumps", "Conflict: VM is not running"},
	} {
		got, err := DumpClaim(Look(tc.vm, tc.vmi), tc.asked)
		if err != nil {
			got = outcome(nil, err)
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestMemoryDumps(t *testing.T) {
	const asks = "requesting a memory dump to claim dumps"
	block, read := k8sv1.PersistentVolumeBlock, []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadOnlyMany}
	always := vm(v1.RunStrategyAlways)
	for name, tc := range map[string]struct {
		vm    *v1.VirtualMachine
		vmi   *v1.VirtualMachineInstance
		claim *k8sv1.PersistentVolumeClaim
		want  string
	}{
		"first":                     {always, dumpable("dumps"), claim("1Gi"), asks},
		"Git owns the VM":           {vm(v1.RunStrategyAlways, ownedBy("kustomize-controller", `{"f:spec":{"f:runStrategy":{},"f:template":{}}}`)), dumpable("dumps"), claim("1Gi"), asks},
		"after one":                 {vm(v1.RunStrategyAlways, dumped("dumps", v1.MemoryDumpCompleted)), dumpable("dumps"), claim("1Gi"), asks},
		"after a failure":           {vm(v1.RunStrategyAlways, dumped("dumps", v1.MemoryDumpFailed)), dumpable("dumps"), claim("1Gi"), asks},
		"just enough":               {always, dumpable("dumps"), claim("241Mi"), asks},
		"too small":                 {always, dumpable("dumps"), claim("240Mi"), "Conflict: PersistentVolumeClaim dumps has 240Mi: must have at least 241Mi for the guest's memory"},
		"a device":                  {always, dumpable("dumps"), claim("1Gi", func(s *k8sv1.PersistentVolumeClaimSpec) { s.VolumeMode = &block }), "Conflict: PersistentVolumeClaim dumps has volumeMode Block: must be Filesystem, for dumps are files"},
		"only read":                 {always, dumpable("dumps"), claim("1Gi", func(s *k8sv1.PersistentVolumeClaimSpec) { s.AccessModes = read }), "Conflict: PersistentVolumeClaim dumps has accessModes ReadOnlyMany: must be one that can be written to"},
		"one is asked for":          {vm(v1.RunStrategyAlways, dumped("dumps", v1.MemoryDumpAssociating)), dumpable("dumps"), claim("1Gi"), "Conflict: a memory dump to claim dumps is Associating already: wait for its end, or take it back with removememorydump"},
		"one is made":               {vm(v1.RunStrategyAlways, dumped("dumps", v1.MemoryDumpInProgress)), dumpable("dumps"), claim("1Gi"), "Conflict: a memory dump to claim dumps is InProgress already: wait for its end, or take it back with removememorydump"},
		"it is being removed":       {vm(v1.RunStrategyAlways, dumped("dumps", v1.MemoryDumpDissociating)), dumpable("dumps"), claim("1Gi"), "Conflict: a memory dump to claim dumps is Dissociating already: wait for its end, or take it back with removememorydump"},
		"no volume":                 {always, dumpable(""), claim("1Gi"), `Conflict: spec.template.spec.volumes: no memoryDump volume of claim "dumps": add {name: dumps, memoryDump: {claimName: dumps}}, with a commit where the VM comes from Git, and restart the VM`},
		"a volume since it started": {vm(v1.RunStrategyAlways, templated("dumps")), dumpable(""), claim("1Gi"), `Conflict: the guest was started without volume "memory": restart the VM`},
		"a volume of another claim": {vm(v1.RunStrategyAlways, templated("more")), dumpable("more"), claim("1Gi"), `Conflict: claimName: Invalid value: "dumps": must be "more", the claim of memoryDump volume "memory"`},
	} {
		if got := outcome(Dump(Look(tc.vm, tc.vmi), tc.claim)); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tc.want)
		}
	}
}

func TestRemovingMemoryDumps(t *testing.T) {
	const removes = "requesting that claim dumps takes no more memory dumps"
	for phase, want := range map[v1.MemoryDumpPhase]string{
		"":                        "Conflict: no claim takes memory dumps of the VM: there is nothing to remove",
		v1.MemoryDumpAssociating:  removes,
		v1.MemoryDumpInProgress:   removes,
		v1.MemoryDumpCompleted:    removes,
		v1.MemoryDumpFailed:       removes,
		v1.MemoryDumpDissociating: "Conflict: the removal of claim dumps was asked for already",
	} {
		asked := vm(v1.RunStrategyHalted)
		if phase != "" {
			dumped("dumps", phase)(asked)
		}
		if got := outcome(RemoveDump(Look(asked, nil))); got != want {
			t.Errorf("%s: got %q, want %q", phase, got, want)
		}
	}
}

func TestPatchesOfMemoryDumps(t *testing.T) {
	first, _ := Dump(Look(vm(v1.RunStrategyAlways), dumpable("dumps")), claim("1Gi"))
	removal, _ := RemoveDump(Look(vm(v1.RunStrategyAlways, dumped("dumps", v1.MemoryDumpCompleted)), nil))
	for _, tc := range []struct {
		actions []Action
		want    string
	}{
		{first, `[{"op":"test","path":"/metadata/uid","value":"vm-1"},{"op":"test","path":"/status/memoryDumpRequest","value":null},` +
			`{"op":"add","path":"/status/memoryDumpRequest","value":{"claimName":"dumps","phase":"Associating"}}]`},
		{removal, `[{"op":"test","path":"/metadata/uid","value":"vm-1"},{"op":"test","path":"/status/memoryDumpRequest","value":{"claimName":"dumps","phase":"Completed","fileName":"web.memory.dump"}},` +
			`{"op":"add","path":"/status/memoryDumpRequest","value":{"claimName":"dumps","phase":"Dissociating","remove":true,"fileName":"web.memory.dump"}}]`},
	} {
		if got := string(tc.actions[0].(RequestDump).Patch()); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}
