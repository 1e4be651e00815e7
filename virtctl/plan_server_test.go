package virtctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	v1 "kubevirt.io/api/core/v1"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/gitops/plan"
	"virtstack.io/virtstack/gitops/source/sourcetest"
	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/machine/change"
)

// kubeconfig writes that of the API server's administrator.
func kubeconfig(t *testing.T, env *kubetest.Env, namespace string) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData}
	c.AuthInfos["a"] = &clientcmdapi.AuthInfo{ClientCertificateData: env.Config.CertData, ClientKeyData: env.Config.KeyData, Token: env.Config.BearerToken}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "a", Namespace: namespace}
	c.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func applied(t *testing.T, env *kubetest.Env, namespace, text, manager string) {
	t.Helper()
	vm := &v1.VirtualMachine{}
	if err := yaml.Unmarshal([]byte(text), vm); err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	vm.Namespace = namespace
	if err := env.Client.Patch(t.Context(), vm, crclient.RawPatch("application/apply-patch+yaml", raw), crclient.FieldOwner(manager), crclient.ForceOwnership); err != nil {
		t.Fatal(err)
	}
}

// runs makes the VMI of a VM, of which the guest runs.
func runs(t *testing.T, env *kubetest.Env, namespace, name string) {
	t.Helper()
	guest := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if err := yaml.Unmarshal([]byte(`{domain: {memory: {guest: 128Mi}, devices: {}}}`), &guest.Spec); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Create(t.Context(), guest); err != nil {
		t.Fatal(err)
	}
	guest.Status.Phase = v1.Running
	if err := env.Client.Status().Update(t.Context(), guest); err != nil {
		t.Fatal(err)
	}
}

// What is planned is what the cluster has against what it would have, whatever the revision before says.
func TestPlanOfAServer(t *testing.T) {
	env := kubetest.Start(t)
	ns := env.Namespace(t)
	r := sourcetest.Serve(t)
	labelled := strings.Replace(goodVM, "spec:\n      domain", "metadata: {labels: {a: b}}\n    spec:\n      domain", 1)
	running := func(name, memory string) string {
		return strings.NewReplacer("web", name, "Halted", "Always", "128Mi", memory).Replace(goodVM)
	}
	applied(t, env, ns, strings.Replace(labelled, "web", "drops", 1), "kustomize-controller")
	applied(t, env, ns, running("runs", "128Mi"), "kustomize-controller")
	applied(t, env, ns, strings.Replace(goodVM, "web", "same", 1), "somebody")
	goes := strings.NewReplacer("web", "goes", "128Mi", "64Mi").Replace(goodVM)
	applied(t, env, ns, goes, "somebody")
	runs(t, env, ns, "runs")
	write(t, r, map[string]string{"vms/goes.yaml": goes, "vms/never-was.yaml": strings.Replace(goodVM, "web", "never-was", 1)})
	r.CommitAll()
	write(t, r, map[string]string{"vms/goes.yaml": "", "vms/never-was.yaml": "",
		"vms/drops.yaml": strings.Replace(goodVM, "web", "drops", 1), "vms/runs.yaml": running("runs", "256Mi"), "vms/same.yaml": strings.Replace(goodVM, "web", "same", 1),
		"vms/new.yaml": strings.Replace(goodVM, "web", "new", 1), "vms/bad.yaml": strings.Replace(strings.Replace(goodVM, "web", "bad", 1), "devices: {}", "devices: {disks: 5}", 1),
		"vms/secret.yaml":    "apiVersion: v1\nkind: Secret\nmetadata: {name: number}\nstringData: {a: 424242}\n",
		"vms/elsewhere.yaml": strings.Replace(goodVM, "name: web", "name: web, namespace: not-there-yet", 1)})
	code, out, errOut := planOf(t, r, "vms", "--server", "--kubeconfig", kubeconfig(t, env, ns), "-o", "json")
	got := plan.Report{}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 3 || got.Unchanged != 1 || strings.Contains(out, "424242") {
		t.Fatalf("code %d, %d unchanged: %v: %s%s", code, got.Unchanged, err, out, errOut)
	}
	want := map[string]struct {
		change string
		class  change.Class
	}{
		"drops": {plan.Changed, change.None}, "runs": {plan.Changed, change.Restart}, "new": {plan.Created, change.Create},
		"goes": {plan.Deleted, change.Delete}, "bad": {plan.Created, change.Create}, "web": {plan.Created, change.Create},
		"number": {plan.Created, change.None},
	}
	for _, i := range got.Objects {
		w, ok := want[i.Name]
		if delete(want, i.Name); !ok || i.Change != w.change || i.Class != w.class && len(i.Refused) == 0 {
			t.Errorf("%s is %s, %s; want %v", i, i.Change, i.Class, w)
		}
		if refused := len(i.Refused) > 0; refused != (i.Name == "bad" || i.Name == "number") {
			t.Errorf("%s is refused: %v", i, i.Refused)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	vms := &v1.VirtualMachineList{}
	if err := env.Client.List(t.Context(), vms, crclient.InNamespace(ns)); err != nil || len(vms.Items) != 4 {
		t.Errorf("a plan has changed the cluster: %d VMs, %v", len(vms.Items), err)
	}
}

func TestPlanOfNoServer(t *testing.T) {
	r := committed(t, "before")
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(missing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := planOf(t, r, "vms", "--server", "--kubeconfig", missing, "--request-timeout", "2s"); code != 1 {
		t.Errorf("got code %d: %s", code, errOut)
	}
	if code, _, errOut := planOf(t, r, "vms", "--server", "--offline"); code != 1 || !strings.Contains(errOut, "offline") {
		t.Errorf("both at once: code %d: %s", code, errOut)
	}
}
