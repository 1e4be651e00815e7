package nodeagent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/kubetest"
)

// S4: every verb on every resource that the API server has, in a namespace and on the whole cluster.
func TestANodeAgentHasTheseRightsAndNoOther(t *testing.T) {
	e := kubetest.Start(t)
	install(t, e)
	kube := kubernetes.NewForConfigOrDie(e.Config)
	_, lists, err := kube.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	var got []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			asked += len(verbs)
			got = append(got, rights(t, kube, list.GroupVersion, r.Name)...)
		}
	}
	want := []string{
		"create certificatesigningrequests of certificates.k8s.io", "create events of ", "create events of events.k8s.io",
		"get certificatesigningrequests of certificates.k8s.io", "get kubevirts of kubevirt.io", "get nodes of ", "get virtualmachineinstances of kubevirt.io",
		"list certificatesigningrequests of certificates.k8s.io", "list kubevirts of kubevirt.io", "list nodes of ", "list pods of ", "list virtualmachineinstances of kubevirt.io",
		"patch events of ", "patch events of events.k8s.io", "patch nodes of ", "patch virtualmachineinstances/status of kubevirt.io",
		"watch certificatesigningrequests of certificates.k8s.io", "watch kubevirts of kubevirt.io", "watch nodes of ", "watch pods of ", "watch virtualmachineinstances of kubevirt.io",
	}
	slices.Sort(got)
	got = slices.Compact(got) // several versions of a group
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	t.Logf("%d questions, %d rights", asked, len(got))
}

// anyAccount may do what every account may: review its own access for one.
const anyAccount = "system:serviceaccount:kubevirt:any"

var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "bind", "escalate", "approve", "sign"}

// rights returns what the node agents' account may do with a resource and any account may not.
func rights(t *testing.T, kube kubernetes.Interface, groupVersion, resource string) (found []string) {
	t.Helper()
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		t.Fatal(err)
	}
	name, sub, _ := strings.Cut(resource, "/")
	for _, verb := range verbs {
		a := &authorizationv1.ResourceAttributes{Namespace: "default", Group: gv.Group, Resource: name, Subresource: sub, Verb: verb}
		if allowed(t, kube, account, a) && !allowed(t, kube, anyAccount, a) {
			found = append(found, verb+" "+resource+" of "+gv.Group)
		}
	}
	return found
}

func allowed(t *testing.T, kube kubernetes.Interface, account string, a *authorizationv1.ResourceAttributes) bool {
	t.Helper()
	review, err := kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: account, Groups: groups, ResourceAttributes: a},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// write is one write of a node agent, and whether it must be let through.
type write struct {
	name  string
	allow bool
	do    func(context.Context, client.Client) error
}

func (w world) status(name, body string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
		return c.Status().Patch(ctx, vmi, client.RawPatch(types.MergePatchType, []byte(body)))
	}
}

func nodePatch(name, body string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, &k8sv1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.MergePatchType, []byte(body)))
	}
}

func request(name, signer string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       certificatesv1.CertificateSigningRequestSpec{Request: testRequest, SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}},
		})
	}
}

// S4: whatever an agent of node-a tries on others' objects, and on its own beyond what it needs.
func (w world) writes() []write {
	return []write{
		{"status of a VMI here", true, w.status("on-node-a", `{"status":{"phase":"Running"}}`)},
		{"status of a VMI elsewhere", false, w.status("on-node-b", `{"status":{"phase":"Failed"}}`)},
		{"status of a VMI that is nowhere yet", false, w.status("nowhere", `{"status":{"phase":"Failed"}}`)},
		{"taking a VMI over", false, w.status("on-node-b", `{"status":{"nodeName":"node-a"}}`)},
		{"taking a VMI that is nowhere", false, w.status("nowhere", `{"status":{"nodeName":"node-a"}}`)},
		{"giving a VMI away", false, w.status("on-node-a", `{"status":{"nodeName":"node-b"}}`)},
		{"naming another Pod the VMI's", false, w.status("on-node-a", `{"status":{"activePods":{"other":"node-a"}}}`)},
		{"forgetting the VMI's Pods", false, w.status("on-node-a", `{"status":{"activePods":null}}`)},
		{"calling for evacuation", false, w.status("on-node-a", `{"status":{"evacuationNodeName":"node-a"}}`)},
		{"naming a migration's target", false, w.status("on-node-a", `{"status":{"migrationState":{"targetNode":"node-a"}}}`)},

		{"labels of the own node", true, nodePatch("node-a", `{"metadata":{"labels":{"cpu-model.node.kubevirt.io/EPYC":"true","kubevirt.io/schedulable":"false","cpumanager":"true"}}}`)},
		{"taking own labels away", true, nodePatch("node-a", `{"metadata":{"labels":{"kubevirt.io/schedulable":null}}}`)},
		{"heartbeat of the own node", true, nodePatch("node-a", `{"metadata":{"annotations":{"kubevirt.io/heartbeat":"\"now\""}}}`)},
		{"labels of another node", false, nodePatch("node-b", `{"metadata":{"labels":{"kubevirt.io/schedulable":"false"}}}`)},
		{"foreign labels", false, nodePatch("node-a", `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`)},
		{"a label that looks like ours", false, nodePatch("node-a", `{"metadata":{"labels":{"evilkubevirt.io/x":""}}}`)},
		{"changing a foreign label", false, nodePatch("node-a", `{"metadata":{"labels":{"zone":"y"}}}`)},
		{"taking a foreign label away", false, nodePatch("node-a", `{"metadata":{"labels":{"zone":null}}}`)},
		{"foreign annotations", false, nodePatch("node-a", `{"metadata":{"annotations":{"volumes.kubernetes.io/x":"y"}}}`)},
		{"taints", false, nodePatch("node-a", `{"spec":{"taints":[{"key":"k","effect":"NoExecute"}]}}`)},
		{"cordoning", false, nodePatch("node-a", `{"spec":{"unschedulable":true}}`)},
		{"finalizers", false, nodePatch("node-a", `{"metadata":{"finalizers":["example.test/x"]}}`)},

		{"own certificate", true, request("own", "virtstack.io/node-agent")},
		{"a client certificate", false, request("client", "kubernetes.io/kube-apiserver-client")},
		{"a kubelet's certificate", false, request("kubelet", "kubernetes.io/kube-apiserver-client-kubelet")},
	}
}

func TestANodeAgentWritesOnlyWhatIsItsOwn(t *testing.T) {
	w := newWorld(t)
	agent := w.e.As(t, account, groups, bound("node-a"))
	awaitPolicy(t, w, agent)
	for _, tc := range w.writes() {
		if err := tc.do(t.Context(), agent); (err == nil) != tc.allow || err != nil && !refused(err) {
			t.Errorf("%s: got %v, want it let through: %v", tc.name, err, tc.allow)
		}
	}
}

// A token that is bound to no node, stolen from a Secret for one, is worth nothing.
func TestATokenWithoutNodeWritesNothing(t *testing.T) {
	w := newWorld(t)
	awaitPolicy(t, w, w.e.As(t, account, groups, bound("node-a")))
	for name, extra := range map[string]map[string][]string{"no claims": nil, "empty": bound(""), "other claims": {"example.test/x": {"node-a"}}} {
		agent := w.e.As(t, account, groups, extra)
		for _, tc := range w.writes() {
			if err := tc.do(t.Context(), agent); !refused(err) {
				t.Errorf("%s, %s: got %v", name, tc.name, err)
			}
		}
	}
}

// The policy is the second wall: with rights on everything, an agent still writes nothing but its own.
func TestThePolicyHoldsWhateverTheRights(t *testing.T) {
	w := newWorld(t)
	agent := w.e.As(t, account, append([]string{"system:masters"}, groups...), bound("node-a"))
	awaitPolicy(t, w, agent)
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "on-node-a"}}
	pod := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "on-node-a"}}
	grace := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kubevirt.io":"virt-launcher"}}}`))
	for _, tc := range append(w.writes(),
		write{"spec of a VMI here", false, func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, vmi, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hostname":"x"}}`)))
		}},
		write{"deleting a VMI here", false, func(ctx context.Context, c client.Client) error { return c.Delete(ctx, vmi) }},
		write{"a new VM", false, func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "new"}, Spec: v1.VirtualMachineSpec{Template: &v1.VirtualMachineInstanceTemplateSpec{}}})
		}},
		write{"a new Pod", false, func(ctx context.Context, c client.Client) error {
			p := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "new"}}
			p.Spec.Containers = []k8sv1.Container{{Name: "c", Image: "i"}}
			return c.Create(ctx, p)
		}},
		write{"labels of a Pod here", false, func(ctx context.Context, c client.Client) error { return c.Patch(ctx, pod, grace) }},
		write{"deleting a Pod here", false, func(ctx context.Context, c client.Client) error { return c.Delete(ctx, pod) }},
		write{"deleting its node", false, func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &k8sv1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}})
		}},
	) {
		if tc.name == "own certificate" { // made by another test already
			continue
		}
		if err := tc.do(t.Context(), agent); (err == nil) != tc.allow || err != nil && !refused(err) {
			t.Errorf("%s: got %v, want it let through: %v", tc.name, err, tc.allow)
		}
	}
}

func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// awaitPolicy waits until the API server has taken the policy up.
func awaitPolicy(t *testing.T, w world, agent client.Client) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return refused(w.status("nowhere", `{"status":{"phase":"Failed"}}`)(ctx, agent)), nil
	})
	if err != nil {
		t.Fatalf("the policy never came to force: %v", err)
	}
}

var testRequest = []byte(`-----BEGIN CERTIFICATE REQUEST-----
MIHJMHECAQAwDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABGB6RBH19fIkDGC2614ZIDViqB+Dg3xnWfkOPaJcimP+qAmSQk/a/LSGP+3N
x9OjMZFMBV8o/Pym1FmazmaJCKigADAKBggqhkjOPQQDAgNIADBFAiA7Ig4kqWUz
SBhkx42w9Lw/OZm0gUvv3JiNpw0HcNXjewIhAJkhmGx0sQtmzpw2g6BTN7JcwbXR
wjmsAspld1URhfRu
-----END CERTIFICATE REQUEST-----
`)
