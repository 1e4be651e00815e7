package operator

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/gitops/build"
)

// parts are the pieces of an install that somebody takes away, in an order of his own.
type parts struct {
	*install
	vm      *v1.VirtualMachine
	manages bool // the operator is there
}

// whole is an install with one VM, which virt-controller holds.
func whole(t *testing.T, strategy v1.KubeVirtUninstallStrategy) *parts {
	t.Helper()
	p := &parts{install: begin(t), manages: true}
	p.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}, Spec: v1.KubeVirtSpec{UninstallStrategy: strategy}})
	p.until("Available", is("Available", "True"))
	p.vm = machine(p.Namespace(t))
	p.vm.Finalizers = []string{v1.VirtualMachineControllerFinalizer}
	p.create(p.vm)
	return p
}

// rounds are those of the operator, if it is there, and of virt-controller while its account is: it lets go of deleted VMs.
func (p *parts) rounds() {
	p.t.Helper()
	for range 12 {
		if p.manages {
			p.round()
			p.startPods()
		}
		p.controller()
	}
}

func (p *parts) controller() {
	p.t.Helper()
	vm := &v1.VirtualMachine{}
	err := p.Client.Get(p.t.Context(), client.ObjectKeyFromObject(p.vm), vm)
	if err != nil || vm.DeletionTimestamp == nil || !p.get(&corev1.ServiceAccount{}, "kubevirt-controller") {
		return
	}
	release := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := p.Client.Patch(p.t.Context(), vm, release); err != nil {
		p.t.Fatal(err)
	}
}

// take removes one of the pieces, as kubectl delete --wait=false does.
func (p *parts) take(piece string) {
	p.t.Helper()
	if piece == "operator" {
		p.manages = false
	}
	for _, o := range p.piece(piece) {
		p.remove(o)
	}
}

// piece are the objects that make it up.
func (p *parts) piece(name string) (all []client.Object) {
	p.t.Helper()
	switch name {
	case "guard": // what keeps the others from going before the KubeVirt
		return []client.Object{&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "virtstack-uninstall-order"}}}
	case "namespace":
		return []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"}}}
	case "operator":
		return p.manifests()
	case "KubeVirt":
		return []client.Object{&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}}}
	case "VMs":
		return []client.Object{p.vm.DeepCopy()}
	case "CRDs":
		for _, name := range p.definitions() {
			all = append(all, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return all
	}
	p.t.Fatalf("no piece %s", name)
	return nil
}

// remove deletes an object. The API server notices a moment later that the guard is gone.
func (p *parts) remove(o client.Object) {
	p.t.Helper()
	eventually(p.t, "deleted: "+o.GetName(), func() bool {
		err := client.IgnoreNotFound(p.Client.Delete(p.t.Context(), o))
		if err != nil && !apierrors.IsForbidden(err) {
			p.t.Fatal(err)
		}
		return err == nil
	})
}

// manifests are those of the operator but the namespace, which an API server alone doesn't empty.
func (p *parts) manifests() (all []client.Object) {
	p.t.Helper()
	objects, err := build.Objects(p.t.Context(), os.DirFS("../../bundles/operator"), "", build.DefaultLimits)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() != "Namespace" {
			all = append(all, o.Unstructured)
		}
	}
	return all
}

// definitions are the names of our CRDs that are there.
func (p *parts) definitions() (names []string) {
	p.t.Helper()
	var all apiextensionsv1.CustomResourceDefinitionList
	if err := p.Client.List(p.t.Context(), &all); err != nil {
		p.t.Fatal(err)
	}
	for _, d := range all.Items {
		names = append(names, d.Name)
	}
	return names
}

// nudged returns the names of our CRDs that are left, and has the API server look at them again: it puts off what it once
// could not do for one that was made anew, for up to a quarter of an hour.
func (p *parts) nudged() []string {
	p.t.Helper()
	left := p.definitions()
	for _, name := range left {
		touch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"test/nudge":%q}}}`, time.Now()))
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(p.Client.Patch(p.t.Context(), crd, touch)); err != nil {
			p.t.Fatal(err)
		}
	}
	return left
}

// again applies the same directory once more, and the operator starts.
func (p *parts) again() {
	p.t.Helper()
	objects, err := build.Objects(p.t.Context(), os.DirFS("../../bundles/crds"), "", build.DefaultLimits)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, o := range objects {
		if err := p.Client.Apply(p.t.Context(), client.ApplyConfigurationFromUnstructured(o.Unstructured), client.ForceOwnership, client.FieldOwner("test")); err != nil {
			p.t.Fatal(err)
		}
	}
	p.install, p.manages = begin(p.t), true
}

// left names what is there of what the operator and its components made.
func (p *parts) left() (names []string) {
	p.t.Helper()
	for kind, list := range map[string]client.ObjectList{
		"ValidatingWebhookConfiguration": &admissionregistrationv1.ValidatingWebhookConfigurationList{}, "ValidatingAdmissionPolicy": &admissionregistrationv1.ValidatingAdmissionPolicyList{},
		"ClusterRole": &rbacv1.ClusterRoleList{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBindingList{}, "PriorityClass": &schedulingv1.PriorityClassList{},
		"ServiceAccount": &corev1.ServiceAccountList{}, "Secret": &corev1.SecretList{}, "ConfigMap": &corev1.ConfigMapList{},
	} {
		if err := p.Client.List(p.t.Context(), list, client.MatchingLabels{"app.kubernetes.io/managed-by": "virt-operator"}); err != nil {
			p.t.Fatal(err)
		}
		items, err := apimeta.ExtractList(list)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, o := range items {
			names = append(names, kind+" "+o.(client.Object).GetName())
		}
	}
	return names
}

// gone tells whether a piece is.
func (p *parts) gone(o client.Object, key client.ObjectKey) bool {
	p.t.Helper()
	err := p.Client.Get(p.t.Context(), key, o)
	if err != nil && !apierrors.IsNotFound(err) {
		p.t.Fatal(err)
	}
	return err != nil
}

// clean checks that nothing is left. That the same directory can be applied again at the first try is shown by the next
// install.
func (p *parts) clean() {
	p.t.Helper()
	if left := p.left(); len(left) > 0 {
		p.t.Errorf("left: %v", left)
	}
}

// Where the guard was taken away, and whatever then goes first, VMs can be deleted as long as virt-controller is there, which is as long as there are VMs; the
// operator, if it went, ends what it had begun once it is applied again; then nothing is left.
func TestPiecesAreRemovedInAnyOrder(t *testing.T) {
	block, remove := v1.KubeVirtUninstallStrategyBlockUninstallIfWorkloadsExist, v1.KubeVirtUninstallStrategyRemoveWorkloads
	for name, tc := range map[string]struct {
		strategy v1.KubeVirtUninstallStrategy
		order    []string
	}{
		"KubeVirt, operator, VMs":                  {block, []string{"KubeVirt", "", "guard", "operator", "", "VMs", ""}},
		"operator, KubeVirt, VMs":                  {block, []string{"guard", "operator", "KubeVirt", "", "VMs", ""}},
		"all at once":                              {block, []string{"guard", "operator", "KubeVirt", "VMs", ""}},
		"operator, KubeVirt, and it takes the VMs": {remove, []string{"guard", "operator", "KubeVirt", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			p := whole(t, tc.strategy)
			for _, piece := range tc.order {
				if piece == "" {
					p.rounds()
					p.held()
					continue
				}
				p.take(piece)
			}
			if !p.manages {
				p.again()
			}
			p.rounds()
			if !p.gone(&v1.VirtualMachine{}, client.ObjectKeyFromObject(p.vm)) || !p.gone(&v1.KubeVirt{}, p.key) {
				t.Error("a VM or the KubeVirt is still there")
			}
			p.clean()
		})
	}
}

// held checks that what lets go of VMs, and what reviews them, is there as long as a VM is.
func (p *parts) held() {
	p.t.Helper()
	if p.gone(&v1.VirtualMachine{}, client.ObjectKeyFromObject(p.vm)) {
		return
	}
	if p.hook() == nil || !p.get(&appsv1.Deployment{}, "virt-controller") || !p.get(&corev1.ServiceAccount{}, "kubevirt-controller") {
		p.t.Error("there is a VM, and its controller or its webhook is gone")
	}
}

// The guard and the CRDs go first: with them go the objects, which the webhook can't refuse. Kinds that are gone have no objects that an
// uninstall could wait for.
func TestDefinitionsAreRemovedFirst(t *testing.T) {
	p := whole(t, v1.KubeVirtUninstallStrategyBlockUninstallIfWorkloadsExist)
	p.take("guard")
	p.take("CRDs")
	eventually(t, "the VM and the KubeVirt are being deleted", func() bool {
		vm, kv := &v1.VirtualMachine{}, &v1.KubeVirt{}
		return !p.gone(vm, client.ObjectKeyFromObject(p.vm)) && !p.gone(kv, p.key) && vm.DeletionTimestamp != nil && kv.DeletionTimestamp != nil
	})
	eventually(t, "kinds without objects are gone", func() bool { return !slices.Contains(p.definitions(), "virtualmachineinstances.kubevirt.io") })
	p.round()
	p.held()
	left := []string{}
	defer func() { t.Logf("CRDs at last: %v", left) }()
	eventually(t, "no CRD is left", func() bool {
		p.now = p.now.Add(time.Second)
		// A kind that is just going may be an error: it is tried again.
		if _, err := p.installer.Round(t.Context(), p.key, p.now); err != nil {
			t.Log(err)
		}
		p.controller()
		left = p.nudged()
		return len(left) == 0
	})
	p.clean()
	p.again()
	p.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}})
	p.until("Available once more", is("Available", "True"))
	p.take("KubeVirt")
	p.until("gone", func(kv *v1.KubeVirt) bool { return kv.UID == "" })
}

// eventually waits for what the API server does by itself.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ask := func(context.Context) (bool, error) { return holds(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, ask); err != nil {
		t.Fatalf("never: %s: %v", what, err)
	}
}
