package operator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The whole life of an install: roll-out in order, no writes when there is nothing to do, update, refusal to go while
// there are VMs, removal without a trace.
func TestLifeOfAnInstall(t *testing.T) {
	i := begin(t)
	i.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}})
	t.Run("a webhook comes after its server", func(t *testing.T) {
		i.until("virt-api is applied", func(kv *v1.KubeVirt) bool {
			if i.hook() != nil {
				t.Fatal("there is a webhook before its server is ready")
			}
			return i.get(&appsv1.Deployment{}, "virt-api")
		})
		for range 3 {
			kv := i.round() // its Pods don't start
			if i.hook() != nil || !is("Available", "False")(kv) || !is("Progressing", "True")(kv) {
				t.Fatalf("while virt-api starts: webhook %v, %v", i.hook() != nil, kv.Status.Conditions)
			}
		}
	})
	kv := i.until("Available", is("Available", "True"))
	if kv.Status.Phase != v1.KubeVirtPhaseDeployed || !is("Created", "True")(kv) || kv.Status.ObservedDeploymentID != kv.Status.TargetDeploymentID {
		t.Errorf("deployed: %+v", kv.Status)
	}
	if h := i.hook(); h == nil || len(h.Webhooks[0].ClientConfig.CABundle) == 0 {
		t.Error("the webhook is not registered, or without trust")
	}
	t.Run("nothing to do writes nothing", func(t *testing.T) { i.idle(t, kv) })
	t.Run("another image is an update, what has left the bundle goes", func(t *testing.T) { i.updated(t) })
	t.Run("a deletion is refused while there is a VM", func(t *testing.T) { i.blocked(t) })
	t.Run("removal leaves nothing", func(t *testing.T) { i.removed(t) })
}

func (i *install) idle(t *testing.T, kv *v1.KubeVirt) {
	d := &appsv1.Deployment{}
	i.get(d, "virt-api")
	before := d.ResourceVersion
	again := i.round()
	i.get(d, "virt-api")
	if again.ResourceVersion != kv.ResourceVersion || d.ResourceVersion != before {
		t.Error("a round without a change has written")
	}
}

func (i *install) updated(t *testing.T) {
	i.installer.files = components(t, "---\napiVersion: v1\nkind: Service\nmetadata: {name: extra}\nspec: {ports: [{port: 80}]}\n")
	i.until("extra", func(*v1.KubeVirt) bool { return i.get(&corev1.Service{}, "extra") })
	i.until("Available", is("Progressing", "False"))
	i.installer.files = components(t, "")
	i.installer.images.Component = "localhost/virtstack:2"
	kv := i.round()
	if !is("Available", "True")(kv) || !is("Progressing", "True")(kv) || !is("Degraded", "True")(kv) || !is("Created", "")(kv) {
		t.Errorf("while updating: %v", kv.Status.Conditions)
	}
	i.until("updated", is("Progressing", "False"))
	d := &appsv1.Deployment{}
	if i.get(d, "virt-api"); d.Spec.Template.Spec.Containers[0].Image != "localhost/virtstack:2" {
		t.Errorf("virt-api runs %s", d.Spec.Template.Spec.Containers[0].Image)
	}
	if i.get(&corev1.Service{}, "extra") {
		t.Error("what has left the bundle is still there")
	}
}

func (i *install) blocked(t *testing.T) {
	vm := machine(i.Namespace(t))
	i.create(vm)
	kv := i.round()
	raw, err := json.Marshal(kv)
	if err != nil {
		t.Fatal(err)
	}
	review := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: raw}}}
	if r := (uninstall{i.installer.live}).Handle(t.Context(), review); r.Allowed || !strings.Contains(r.Result.Message, vm.Namespace+"/web") {
		t.Errorf("the webhook says %+v", r.Result)
	}
	if err := i.Client.Delete(t.Context(), kv); err != nil {
		t.Fatal(err)
	}
	kv = i.round()
	if !is("Synchronized", "False")(kv) || i.hook() == nil || !i.get(&appsv1.Deployment{}, "virt-api") {
		t.Errorf("deleted with a VM: %v", kv.Status.Conditions)
	}
	if err := i.Client.Delete(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
}

// mark makes a node as components and an administrator have left it, and a lease.
func (i *install) mark(t *testing.T) {
	i.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"kubevirt.io/pool": "mine"}}})
	for manager, patch := range map[string]string{
		"virt-handler":         `{"metadata":{"labels":{"cpu-model.node.kubevirt.io/qemu64":"true"},"annotations":{"kubevirt.io/heartbeat":"now"}}}`,
		"virt-controller-node": `{"metadata":{"labels":{"kubevirt.io/schedulable":"false"}}}`,
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
		if err := i.Client.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
	}
	i.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-controller"}})
}

func (i *install) removed(t *testing.T) {
	i.mark(t)
	gone := false
	for range 20 {
		if i.hook() == nil {
			gone = true
		}
		if !gone && !i.get(&appsv1.Deployment{}, "virt-api") {
			t.Fatal("virt-api went before its webhook")
		}
		if i.round().UID == "" {
			break
		}
	}
	for name, o := range map[string]client.Object{
		"virt-api": &appsv1.Deployment{}, "virt-handler": &appsv1.DaemonSet{}, "kubevirt-ca": &corev1.Secret{}, "kubevirt-virt-api-certs": &corev1.Secret{},
		"kubevirt-inventory": &corev1.ConfigMap{}, "kubevirt": &v1.KubeVirt{}, "kubevirt-controller": &corev1.ServiceAccount{},
		"virt-controller": &coordinationv1.Lease{},
	} {
		if i.get(o, name) {
			t.Errorf("%T %s is left", o, name)
		}
	}
	var roles rbacv1.ClusterRoleList
	if err := i.Client.List(t.Context(), &roles, client.MatchingLabels{"app.kubernetes.io/managed-by": "virt-operator"}); err != nil || len(roles.Items) > 0 {
		t.Errorf("cluster roles are left: %d, %v", len(roles.Items), err)
	}
	node := &corev1.Node{}
	if err := i.Client.Get(t.Context(), client.ObjectKey{Name: "node-1"}, node); err != nil {
		t.Fatal(err)
	}
	if len(node.Annotations) != 0 || node.Labels["kubevirt.io/pool"] != "mine" || len(node.Labels) != 1 {
		t.Errorf("the node has labels %v and annotations %v", node.Labels, node.Annotations)
	}
	if !i.get(&corev1.ServiceAccount{}, "kubevirt-operator") {
		t.Error("what the install manifests own is gone")
	}
}

func TestSecondKubeVirtIsRefused(t *testing.T) {
	i := begin(t)
	i.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "first"}})
	i.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace(t), Name: "second"}})
	var list v1.KubeVirtList
	if err := i.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, kv := range list.Items {
		i.key = client.ObjectKeyFromObject(&kv)
		got := i.round()
		if kv.Name == "second" && (!is("Synchronized", "False")(got) || !is("Available", "")(got) || got.Status.Conditions[0].Reason != "ExistingDeployment") {
			t.Errorf("second: %v", got.Status.Conditions)
		}
	}
	for _, kv := range list.Items {
		i.key = client.ObjectKeyFromObject(&kv)
		if err := i.Client.Delete(t.Context(), &kv); err != nil {
			t.Fatal(err)
		}
		i.until("gone", func(kv *v1.KubeVirt) bool { return kv.UID == "" }) // or the next test's would be a second one
	}
}

// S9: with a token that is bound to its node, an agent gets its own certificate; with another node's it gets none.
func TestNodeAgentsGetTheirCertificate(t *testing.T) {
	i := begin(t)
	i.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "ca"}})
	defer func() {
		_ = i.Client.Delete(context.Background(), &v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "ca"}})
	}()
	i.key.Name = "ca"
	if _, err := i.certifier.Round(t.Context(), i.key, i.now); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]certificatesv1.RequestConditionType{"node-1": "Approved", "node-2": "Denied"} {
		csr := i.ask(node)
		if len(csr.Status.Conditions) != 1 || csr.Status.Conditions[0].Type != want {
			t.Errorf("agent of node-1 asks for %s: %v", node, csr.Status.Conditions)
		}
		if (len(csr.Status.Certificate) > 0) != (want == "Approved") {
			t.Errorf("agent of node-1 asks for %s: got a certificate of %d bytes", node, len(csr.Status.Certificate))
		}
	}
}

// ask sends the request of node-1's agent for a certificate of node.
func (i *install) ask(node string) *certificatesv1.CertificateSigningRequest {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{{Scheme: "virtstack", Host: "virt-handler", Path: "/" + node}}}, key)
	if err != nil {
		i.t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: "virtstack.io/node-agent", Usages: []certificatesv1.KeyUsage{"client auth", "digital signature", "server auth"},
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}
	agent := i.As(i.t, "system:serviceaccount:kubevirt:kubevirt-handler", []string{"system:masters"}, map[string][]string{"authentication.kubernetes.io/node-name": {"node-1"}})
	if err := agent.Create(i.t.Context(), csr); err != nil {
		i.t.Fatal(err)
	}
	if _, err := i.signer.Round(i.t.Context(), client.ObjectKeyFromObject(csr), i.now); err != nil {
		i.t.Fatal(err)
	}
	if err := i.Client.Get(i.t.Context(), client.ObjectKeyFromObject(csr), csr); err != nil && !apierrors.IsNotFound(err) {
		i.t.Fatal(err)
	}
	return csr
}
