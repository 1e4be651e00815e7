package virtctl

import (
	"strings"
	"testing"
)

const ownedVM = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web
  labels: {app.kubernetes.io/part-of: shop, virtstack.io/owner: team-a}
spec:
  runStrategy: Halted
  template:
    spec:
      evictionStrategy: LiveMigrate
      domain:
        cpu: {cores: 2}
        memory: {guest: 128Mi}
        devices: {}
`

const ownPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: names}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [kubevirt.io], apiVersions: ["*"], operations: [CREATE], resources: [virtualmachines]}
  validations:
  - {expression: "object.metadata.name.startsWith('vm-')", message: "metadata.name: must begin with vm-"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: names}
spec: {policyName: names, validationActions: [Deny]}
`

func TestLint(t *testing.T) {
	ceiling := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy-ceilings, namespace: kubevirt}\ndata: {cpus: \"1\"}\n---\n"
	own := map[string]string{"vm.yaml": ownedVM, "own/kustomization.yaml": "resources: [policy.yaml]\n", "own/policy.yaml": ownPolicy}
	for name, tc := range map[string]struct {
		files map[string]string
		args  []string
		code  int
		want  []string
	}{
		"passes":                     {map[string]string{"vm.yaml": ownedVM}, []string{"-f", "vm.yaml"}, 0, nil},
		"refused by this release's":  {map[string]string{"vm.yaml": goodVM}, []string{"-f", "vm.yaml"}, 1, []string{"vm.yaml:1: VirtualMachine web: eviction-strategy.policies.virtstack.io: spec.template.spec.evictionStrategy", "metadata.labels[virtstack.io/owner]: Required value"}},
		"parameters among manifests": {map[string]string{"vm.yaml": ceiling + ownedVM}, []string{"-f", "vm.yaml"}, 1, []string{"spec.template.spec.domain.cpu: Invalid value: 2: must be at most 1 vCPUs"}},
		"own policies":               {own, []string{"-f", "vm.yaml", "--policies", "own"}, 1, []string{"vm.yaml:1: VirtualMachine web: names: metadata.name: must begin with vm-"}},
		"no policies":                {map[string]string{"vm.yaml": ownedVM, "own/kustomization.yaml": "resources: [vm.yaml]\n", "own/vm.yaml": ownedVM}, []string{"-f", "vm.yaml", "--policies", "own"}, 2, []string{"there is no ValidatingAdmissionPolicyBinding"}},
		"no manifests":               {nil, nil, 2, []string{"no manifests"}},
		"a policy that can't be compiled": {map[string]string{"vm.yaml": ownedVM, "own/kustomization.yaml": "resources: [policy.yaml]\n",
			"own/policy.yaml": strings.Replace(ownPolicy, "object.metadata", "obj.metadata", 1)}, []string{"-f", "vm.yaml", "--policies", "own"}, 2, []string{"compiling ValidatingAdmissionPolicy names", "obj"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := ran(t, "lint", tc.files, "", tc.args...)
			if code != tc.code || !containsEach(out+errOut, tc.want) {
				t.Errorf("got %d, %q, %q; want %d, %q", code, out, errOut, tc.code, tc.want)
			}
		})
	}
}

func containsEach(s string, texts []string) bool {
	for _, t := range texts {
		if !strings.Contains(s, t) {
			return false
		}
	}
	return true
}
