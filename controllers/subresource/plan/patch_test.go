package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

func TestPatches(t *testing.T) {
	bare := vm(v1.RunStrategyManual)
	bare.Status = v1.VirtualMachineStatus{}
	dying := vmi(v1.Running)
	dying.Spec.TerminationGracePeriodSeconds = seconds(60)
	for name, tc := range map[string]struct {
		got  []byte
		want string
	}{
		"run strategy": {SetStrategy{vm(v1.RunStrategyHalted), true}.Patch(),
			`{"metadata":{"resourceVersion":"7","uid":"vm-1"},"spec":{"runStrategy":"Always"}}`},
		"running": {SetStrategy{vm("", running(true)), false}.Patch(),
			`{"metadata":{"resourceVersion":"7","uid":"vm-1"},"spec":{"running":false}}`},
		"first request": {Request{vm(v1.RunStrategyManual, failing), []v1.VirtualMachineStateChangeRequest{startRequest()}}.Patch(),
			`[{"op":"test","path":"/metadata/uid","value":"vm-1"},{"op":"test","path":"/status/stateChangeRequests","value":null},` +
				`{"op":"add","path":"/status/stateChangeRequests","value":[{"action":"Start"}]},` +
				`{"op":"remove","path":"/status/startFailure","value":null}]`},
		"stop in place of a start": {Request{vm(v1.RunStrategyManual, failing, waiting(v1.StartRequest)), []v1.VirtualMachineStateChangeRequest{stopRequest(vmi(v1.Running))}}.Patch(),
			`[{"op":"test","path":"/metadata/uid","value":"vm-1"},{"op":"test","path":"/status/stateChangeRequests","value":[{"action":"Start"}]},` +
				`{"op":"add","path":"/status/stateChangeRequests","value":[{"action":"Stop","uid":"vmi-1"}]}]`},
		"no status yet": {Request{bare, []v1.VirtualMachineStateChangeRequest{startRequest()}}.Patch(),
			`[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"add","path":"/status","value":{"stateChangeRequests":[{"action":"Start"}]}}]`},
		"paused at first": {StartHalted{vm(v1.RunStrategyHalted), true, noon}.Word().Patch(),
			`[{"op":"test","path":"/metadata/uid","value":"vm-1"},{"op":"test","path":"/status/stateChangeRequests","value":null},` +
				`{"op":"add","path":"/status/stateChangeRequests","value":[{"action":"Start","data":{"paused":"true","virtstack.io/until":"2026-05-01T12:00:30Z"}}]}]`},
		"paused at first, taken back": {StartHalted{vm(v1.RunStrategyHalted), true, noon}.Word().Undo(),
			`[{"op":"test","path":"/metadata/uid","value":"vm-1"},{"op":"test","path":"/status/stateChangeRequests","value":[{"action":"Start","data":{"paused":"true","virtstack.io/until":"2026-05-01T12:00:30Z"}}]},` +
				`{"op":"remove","path":"/status/stateChangeRequests","value":null}]`},
		"a start after one that was cut off": {StartHalted{vm(v1.RunStrategyHalted, waiting(v1.StartRequest)), false, noon}.Word().Patch(),
			`[{"op":"test","path":"/metadata/uid","value":"vm-1"},{"op":"test","path":"/status/stateChangeRequests","value":[{"action":"Start"}]},` +
				`{"op":"remove","path":"/status/stateChangeRequests","value":null}]`},
		"default grace": {SetGrace{vmi(v1.Running), 0}.Patch(),
			`[{"op":"test","path":"/metadata/uid","value":"vmi-1"},{"op":"test","path":"/spec/terminationGracePeriodSeconds","value":null},` +
				`{"op":"add","path":"/spec/terminationGracePeriodSeconds","value":0}]`},
		"shorter grace": {SetGrace{dying, 5}.Patch(),
			`[{"op":"test","path":"/metadata/uid","value":"vmi-1"},{"op":"test","path":"/spec/terminationGracePeriodSeconds","value":60},` +
				`{"op":"add","path":"/spec/terminationGracePeriodSeconds","value":5}]`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(tc.got); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func ownedBy(manager, fields string) vmOption {
	return func(vm *v1.VirtualMachine) {
		vm.ManagedFields = append(vm.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
}

func marked(labels, annotations map[string]string) vmOption {
	return func(vm *v1.VirtualMachine) { vm.Labels, vm.Annotations = labels, annotations }
}

const runStrategyField = `{"f:spec":{"f:runStrategy":{}}}`

// Case: start and stop never fight a commit.
func TestGitOwnsTheRunStrategy(t *testing.T) {
	comes := func(owner string) string {
		return `Conflict: spec.runStrategy comes from Git: it is applied by ` + owner + `; commit "runStrategy: Halted" there instead of "runStrategy: Always"`
	}
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		want string
	}{
		"nobody":  {vm(v1.RunStrategyAlways), "setting runStrategy: Halted"},
		"kubectl": {vm(v1.RunStrategyAlways, ownedBy("kubectl", runStrategyField)), "setting runStrategy: Halted"},
		"Git owns another field": {vm(v1.RunStrategyAlways, ownedBy("kustomize-controller", `{"f:spec":{"f:template":{}}}`)),
			"setting runStrategy: Halted"},
		"Flux": {vm(v1.RunStrategyAlways, ownedBy("kubectl", runStrategyField), ownedBy("kustomize-controller", runStrategyField),
			marked(map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, nil)),
			comes("kustomize-controller from Kustomization flux-system/apps")},
		"Helm by Flux": {vm(v1.RunStrategyAlways, ownedBy("helm-controller", runStrategyField),
			marked(map[string]string{"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "shop"}, nil)),
			comes("helm-controller from HelmRelease shop/shop")},
		"Argo CD by annotation": {vm(v1.RunStrategyAlways, ownedBy("argocd-controller", runStrategyField),
			marked(nil, map[string]string{"argocd.argoproj.io/tracking-id": "shop:kubevirt.io/VirtualMachine:shop/web"})),
			comes("argocd-controller from Application shop")},
		"Argo CD by label": {vm(v1.RunStrategyAlways, ownedBy("argocd-application-controller", runStrategyField),
			marked(map[string]string{"app.kubernetes.io/instance": "shop"}, nil)),
			comes("argocd-application-controller from Application shop")},
		"our Bundle": {vm(v1.RunStrategyAlways, ownedBy("virt-bundles", runStrategyField),
			marked(map[string]string{"bundle.virtstack.io/name": "vms", "bundle.virtstack.io/namespace": "shop"}, nil)),
			comes("virt-bundles from Bundle shop/vms")},
		"one that the administrator names": {vm(v1.RunStrategyAlways, ownedBy("fleet-agent", runStrategyField)), comes("fleet-agent")},
		"unmarked":                         {vm(v1.RunStrategyAlways, ownedBy("kustomize-controller", runStrategyField)), comes("kustomize-controller")},
		"unreadable":                       {vm(v1.RunStrategyAlways, ownedBy("kustomize-controller", `{"f:`)), comes("kustomize-controller")},
		"running": {vm("", running(true), ownedBy("kustomize-controller", `{"f:spec":{"f:running":{}}}`)),
			`Conflict: spec.running comes from Git: it is applied by kustomize-controller; commit "running: false" there instead of "running: true"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(Stop(Seen{VM: tc.vm, GitManagers: []string{"fleet-*"}}, v1.StopOptions{})); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestGitIsNoBarToWhatLeavesTheSpecAlone(t *testing.T) {
	owned := ownedBy("virt-bundles", runStrategyField)
	for name, got := range map[string]string{
		"restart":     outcome(Restart(Look(vm(v1.RunStrategyAlways, owned), vmi(v1.Running)), v1.RestartOptions{})),
		"stop rerun":  outcome(Stop(Look(vm(v1.RunStrategyRerunOnFailure, owned), vmi(v1.Running)), v1.StopOptions{})),
		"start rerun": outcome(Start(Look(vm(v1.RunStrategyRerunOnFailure, owned), nil), v1.StartOptions{})),
	} {
		if want := map[string]string{"restart": "requesting Stop Start", "stop rerun": "requesting Stop", "start rerun": "requesting Start"}[name]; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
