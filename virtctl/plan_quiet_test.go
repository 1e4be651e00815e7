package virtctl

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/gitops/source/sourcetest"
	"virtstack.io/virtstack/kube/kubetest"
)

// A plan is read by more people than the objects are: it names what differs, and shows nothing of it, neither of a Secret
// nor of an annotation or the cloud-init of a VM, of the commit or of the cluster (threat G11).
func TestAPlanShowsNoValue(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\":{\"a\":\"canary-1\"}}'}\nstringData: {a: canary-1}\ndata: {b: Y2FuYXJ5LTE=}\n"
	vm := strings.NewReplacer("metadata: {name: web}", "metadata: {name: web, annotations: {note: canary-1}}",
		"devices: {}\n", "devices: {}\n      volumes: [{name: seed, cloudInitNoCloud: {userData: 'password: canary-1'}}]\n").Replace(goodVM)
	second := strings.NewReplacer("canary-1", "canary-2", "Y2FuYXJ5LTE=", "Y2FuYXJ5LTI=")
	r := sourcetest.Serve(t)
	write(t, r, map[string]string{"vms/secret.yaml": secret, "vms/vm.yaml": vm})
	r.CommitAll()
	write(t, r, map[string]string{"vms/secret.yaml": second.Replace(secret), "vms/vm.yaml": second.Replace(vm)})

	env := kubetest.Start(t)
	ns := env.Namespace(t)
	live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "login", Annotations: map[string]string{"note": "canary-live"}}, StringData: map[string]string{"a": "canary-live"}}
	if err := env.Client.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	applied(t, env, ns, strings.ReplaceAll(vm, "canary-1", "canary-live"), "kustomize-controller")
	for what, how := range map[string][]string{"the revision before": nil, "the cluster": {"--server", "--kubeconfig", kubeconfig(t, env, ns)}} {
		for _, format := range []string{"", "json", "yaml", "markdown"} {
			code, out, errOut := planOf(t, r, append([]string{"vms", "-o", format}, how...)...)
			if strings.Contains(out+errOut, "canary") || strings.Contains(out+errOut, "Y2FuYXJ5") {
				t.Errorf("%s, %s: it is shown:\n%s%s", what, format, out, errOut)
			}
			if code == 1 || !strings.Contains(out, "login") || !strings.Contains(out, "userData") {
				t.Errorf("%s, %s: code %d: what differs is not named:\n%s%s", what, format, code, out, errOut)
			}
		}
	}
}
