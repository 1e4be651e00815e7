package nodeagent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/machine/names"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

const (
	account  = "system:serviceaccount:kubevirt:kubevirt-handler"
	nodeNote = "authentication.kubernetes.io/node-name"
)

var groups = []string{"system:serviceaccounts", "system:serviceaccounts:kubevirt", "system:authenticated"}

// bound are the claims of a token that is bound to a Pod on a node.
func bound(node string) map[string][]string { return map[string][]string{nodeNote: {node}} }

// install applies what the bundle gives node agents: account, rights and policy.
func install(t *testing.T, e *kubetest.Env) {
	t.Helper()
	ns := &k8sv1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.Namespace}}
	if err := e.Client.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"rbac.yaml", "policy.yaml"} {
		content, err := os.ReadFile(filepath.Join("..", "bundles", "components", "virt-handler", f))
		if err != nil {
			t.Fatal(err)
		}
		docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			o := &unstructured.Unstructured{}
			if err := docs.Decode(o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			if o.GetKind() == "ServiceAccount" {
				o.SetNamespace(names.Namespace) // as the bundle's kustomization does
			}
			err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership)
			if err != nil {
				t.Fatalf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// world is a cluster of two nodes with a VMI and its Pod on each.
type world struct {
	e  *kubetest.Env
	ns string
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{e: kubetest.Start(t)}
	install(t, w.e)
	w.ns = w.e.Namespace(t)
	for _, node := range []string{"node-a", "node-b"} {
		n := &k8sv1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"zone": "z", "kubevirt.io/schedulable": "true"}}}
		if err := w.e.Client.Create(t.Context(), n); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		w.place(t, "on-"+node, node)
	}
	w.place(t, "nowhere", "")
	return w
}

// place makes a VMI and its Pod as virt-controller would.
func (w world) place(t *testing.T, name, node string) {
	t.Helper()
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	if err := w.e.Client.Create(t.Context(), vmi); err != nil {
		t.Fatal(err)
	}
	if node != "" {
		vmi.Status.Phase, vmi.Status.NodeName = v1.Scheduled, node
		vmi.Status.ActivePods = map[types.UID]string{"pod-uid": node}
		if err := w.e.Client.Status().Update(t.Context(), vmi); err != nil {
			t.Fatal(err)
		}
	}
	pod := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	pod.Spec.NodeName = node
	pod.Spec.Containers = []k8sv1.Container{{Name: "compute", Image: "image"}}
	pod.Spec.AutomountServiceAccountToken = new(false)
	if err := w.e.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}
