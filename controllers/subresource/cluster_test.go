package subresource

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	k8sv1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/machine/names"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

const account = "system:serviceaccount:kubevirt:kubevirt-apiserver"

// install applies files of the component bundle.
func install(t *testing.T, e *kubetest.Env, files ...string) {
	t.Helper()
	ns := &k8sv1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.Namespace}}
	if err := e.Client.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join("..", "..", "bundles", "components", f))
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
			put(t, e, o)
		}
	}
}

func put(t *testing.T, e *kubetest.Env, o *unstructured.Unstructured) {
	t.Helper()
	switch o.GetKind() {
	case "ServiceAccount", "Role", "RoleBinding":
		o.SetNamespace(names.Namespace) // as the bundle's kustomization does
	}
	err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership)
	if err != nil {
		t.Fatalf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// onCluster returns a server that has the rights of virt-api's account and no more.
func onCluster(t *testing.T, e *kubetest.Env) *Server {
	t.Helper()
	install(t, e, "virt-api/rbac.yaml", "virt-api/policy.yaml", "roles/view.yaml", "roles/edit.yaml", "roles/admin.yaml")
	s := newServer(t)
	s.Kube = asAccount(t, e)
	s.Reviewer = ClusterReviewer{kubernetes.NewForConfigOrDie(e.ConfigAs(account, serviceAccountGroups, nil))}
	return s
}

var serviceAccountGroups = []string{"system:serviceaccounts", "system:serviceaccounts:kubevirt", user.AllAuthenticated}

func asAccount(t *testing.T, e *kubetest.Env) client.Client {
	return e.As(t, account, serviceAccountGroups, nil)
}

// bind gives alice a role in a namespace and waits until the API server goes by it.
func bind(t *testing.T, e *kubetest.Env, ns, role string) {
	t.Helper()
	b := &rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: strings.ReplaceAll(role, ":", "-")},
		RoleRef:  rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbac.Subject{{APIGroup: rbac.GroupName, Kind: "User", Name: alice}}}
	if err := e.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	asked := authorization.ResourceAttributes{Namespace: ns, Group: group, Resource: "virtualmachines", Subresource: "objectgraph", Verb: "get"}
	eventually(t, func() bool {
		sar := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{User: alice, ResourceAttributes: &asked}}
		return e.Client.Create(t.Context(), sar) == nil && sar.Status.Allowed
	})
}

func create(t *testing.T, e *kubetest.Env, ns string, strategy v1.VirtualMachineRunStrategy) *v1.VirtualMachine {
	t.Helper()
	vm := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	vm.Spec.RunStrategy = &strategy
	vm.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{}
	if err := e.Client.Create(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	return vm
}

func at(ns, resource, verb string) string {
	return base + "/v1/namespaces/" + ns + "/" + resource + "/web/" + verb
}

// of returns where a route is served for the namespace, or for the VM or VMI web in it.
func of(ns string, r Route) string {
	if r.ofNamespace() {
		return base + "/v1/namespaces/" + ns + "/" + r.Resource
	}
	return at(ns, r.Resource, r.Subresource)
}

// nothing is what a route answers where there is no VM, and none in the request.
func nothing(r Route) int {
	if r.ofNamespace() || r.Subresource == "memorydump" {
		return 400
	}
	return 404
}

func TestVerbsOnAnAPIServer(t *testing.T) {
	e := kubetest.Start(t)
	s := onCluster(t, e)
	ns := e.Namespace(t)
	bind(t, e, ns, "kubevirt.io:edit")
	vm := create(t, e, ns, v1.RunStrategyHalted)
	call := func(verb, body string, want int) {
		t.Helper()
		if w := ask(s, "PUT", at(ns, "virtualmachines", verb), body); w.Code != want {
			t.Fatalf("%s %s: HTTP %d %s, want %d", verb, body, w.Code, w.Body, want)
		}
		if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(vm), vm); err != nil {
			t.Fatal(err)
		}
	}
	call("start", `{"dryRun":["All"]}`, 202)
	if *vm.Spec.RunStrategy != v1.RunStrategyHalted {
		t.Errorf("after a dry run: %s", *vm.Spec.RunStrategy)
	}
	call("start", "", 202)
	if *vm.Spec.RunStrategy != v1.RunStrategyAlways || vm.ManagedFields[len(vm.ManagedFields)-1].Manager != manager {
		t.Errorf("after start: %s, %+v", *vm.Spec.RunStrategy, vm.ManagedFields)
	}
	call("stop", "", 202)
	call("stop", "", 409)
	call("restart", "", 409)

	manual := v1.RunStrategyManual
	vm.Spec.RunStrategy = &manual
	if err := e.Client.Update(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	generation := vm.Generation
	call("start", "", 202)
	if requests202(vm) != "Start" || vm.Generation != generation {
		t.Errorf("after start: requests %q, generation %d, before %d", requests202(vm), vm.Generation, generation)
	}
	call("start", "", 500)
	stale := []byte(`[{"op":"test","path":"/status/stateChangeRequests","value":null},{"op":"add","path":"/status/stateChangeRequests","value":[]}]`)
	if err := s.patchStatus(t.Context(), vm, stale, nil); !errors.Is(err, errChanged) {
		t.Errorf("a status patch on what is no longer there: %v", err)
	}
	gone := []byte(`[{"op":"remove","path":"/status/startFailure"}]`)
	if err := s.patchStatus(t.Context(), vm, gone, nil); !errors.Is(err, errChanged) {
		t.Errorf("a removal of what is no longer there: %v", err)
	}
}

func TestGitOwnsOnAnAPIServer(t *testing.T) {
	e := kubetest.Start(t)
	s := onCluster(t, e)
	ns := e.Namespace(t)
	bind(t, e, ns, "kubevirt.io:edit")
	vm := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
		"metadata": map[string]any{"namespace": ns, "name": "web", "labels": map[string]any{
			"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}},
		"spec": map[string]any{"runStrategy": "Always", "template": map[string]any{"spec": map[string]any{"domain": map[string]any{"devices": map[string]any{}}}}},
	}}
	if err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(vm), client.FieldOwner("kustomize-controller")); err != nil {
		t.Fatal(err)
	}
	w := ask(s, "PUT", at(ns, "virtualmachines", "stop"), "")
	if got := statusOf(t, w); w.Code != 409 || !strings.Contains(got.Message, "kustomize-controller from Kustomization flux-system/apps") {
		t.Errorf("HTTP %d %s", w.Code, got.Message)
	}
	for _, step := range []struct{ verb, query, want string }{
		{"stop", "?override=true&for=2h&reason=disk+check", `"run":false`},
		{"stop", "?override=true&for=3h&reason=longer", `"reason":"longer","by":"alice"`},
		{"start", "", ""},
	} {
		if w := ask(s, "PUT", at(ns, "virtualmachines", step.verb)+step.query, ""); w.Code != 202 {
			t.Errorf("%s%s: HTTP %d %s", step.verb, step.query, w.Code, statusOf(t, w).Message)
		}
		after := &v1.VirtualMachine{}
		if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(vm), after); err != nil || after.Generation != vm.GetGeneration() {
			t.Errorf("generation %d, then %d, %v", vm.GetGeneration(), after.Generation, err)
		}
		got, there := after.Annotations[names.RunOverride]
		if there == (step.want == "") || !strings.Contains(got, step.want) {
			t.Errorf("after %s%s: got %q, want %q", step.verb, step.query, got, step.want)
		}
	}
}

// What the roles grant is what a call gets, in the namespace of the binding and nowhere else. Source:
// kubevirt/kubevirt#9120.
func TestRightsPerVerb(t *testing.T) {
	e := kubetest.Start(t)
	s := onCluster(t, e)
	elsewhere := e.Namespace(t)
	for _, role := range []string{"view", "edit", "admin"} {
		ns := e.Namespace(t)
		bind(t, e, ns, "kubevirt.io:"+role)
		for _, route := range Routes {
			granted := grants(t, role, route.Name(), route.Verb())
			if w := ask(s, route.Method, of(ns, route), ""); (w.Code == 403) == granted || granted && w.Code != nothing(route) {
				t.Errorf("%s may %s: HTTP %d", role, route.Name(), w.Code)
			}
			if w := ask(s, route.Method, of(elsewhere, route), ""); w.Code != 403 {
				t.Errorf("%s may %s elsewhere: HTTP %d", role, route.Name(), w.Code)
			}
		}
		if w := ask(s, "GET", base+"/namespaces/"+ns+"/virtualmachineinstances/web/console", ""); w.Code != 403 {
			t.Errorf("%s on a path without version: HTTP %d", role, w.Code)
		}
	}
}

// What virt-api's account is worth to someone who has stolen it.
func TestAccountIsNarrow(t *testing.T) {
	e := kubetest.Start(t)
	onCluster(t, e)
	stolen := asAccount(t, e)
	ns := e.Namespace(t)
	vm := create(t, e, ns, v1.RunStrategyManual)
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	bystander := pod(ns, "bystander", nil)
	for _, o := range []client.Object{vmi, bystander} {
		if err := e.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	launcher := pod(ns, "virt-launcher-web", vmi)
	if err := e.Client.Create(t.Context(), launcher); err != nil {
		t.Fatal(err)
	}
	merge := func(o client.Object, patch string) error {
		return stolen.Patch(t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	eventually(t, func() bool { // a new policy takes a moment
		label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
		return refused(stolen.Patch(t.Context(), vm.DeepCopy(), label, client.DryRunAll))
	})
	for what, err := range map[string]error{
		"change a VM's template": merge(vm, `{"spec":{"template":{"spec":{"hostname":"x"}}}}`),
		"add a field to a VM":    merge(vm, `{"spec":{"instancetype":{"name":"x"}}}`),
		"remove a VM's template": merge(vm, `{"spec":{"template":null}}`),
		"label a VM":             merge(vm, `{"metadata":{"labels":{"a":"b"}}}`),
		"annotate a VM":          merge(vm, `{"metadata":{"annotations":{"a":"b"}}}`),
		"override a VMI":         merge(vmi, `{"metadata":{"annotations":{"virtstack.io/run-override":"{}"}}}`),
		"change a VMI's domain":  merge(vmi, `{"spec":{"domain":{"memory":{"guest":"1Gi"}}}}`),
		"label a VMI":            merge(vmi, `{"metadata":{"labels":{"kubevirt.io/nodeName":"x"}}}`),
		"delete a Pod":           stolen.Delete(t.Context(), bystander),
		"delete a VM":            stolen.Delete(t.Context(), vm.DeepCopy()),
		"read secrets":           stolen.List(t.Context(), &k8sv1.SecretList{}, client.InNamespace(ns)),
		"list Pods elsewhere":    stolen.List(t.Context(), &k8sv1.PodList{}, client.InNamespace(ns)),
		"read another ConfigMap": stolen.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "x"}, &k8sv1.ConfigMap{}),
	} {
		if !refused(err) {
			t.Errorf("virt-api's account may %s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"set the run strategy":      merge(vm, `{"spec":{"runStrategy":"Halted"}}`),
		"override the run strategy": merge(vm, `{"metadata":{"annotations":{"virtstack.io/run-override":"{}"}}}`),
		"set the grace period":      merge(vmi, `{"spec":{"terminationGracePeriodSeconds":3}}`),
		"delete a launcher":         stolen.Delete(t.Context(), launcher),
		"list node agents":          stolen.List(t.Context(), &k8sv1.PodList{}, client.InNamespace(names.Namespace)),
		"read the front proxy's":    client.IgnoreNotFound(stolen.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: frontProxyConfigMap}, &k8sv1.ConfigMap{})),
		"list it, as watches must":  stolen.List(t.Context(), &k8sv1.ConfigMapList{}, client.InNamespace("kube-system"), client.MatchingFields{"metadata.name": frontProxyConfigMap}),
	} {
		if err != nil {
			t.Errorf("virt-api's account may not %s: %v", what, err)
		}
	}
}

// refused reports whether RBAC (403) or a policy (422) said no.
func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

func pod(ns, name string, owner *v1.VirtualMachineInstance) *k8sv1.Pod {
	p := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{v1.AppLabel: names.Launcher}},
		Spec: k8sv1.PodSpec{Containers: []k8sv1.Container{{Name: "compute", Image: "virt-launcher"}}}}
	if owner != nil {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1.VirtualMachineInstanceGroupVersionKind)}
	}
	return p
}
