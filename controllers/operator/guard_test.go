package operator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// try deletes a piece, as a Git tool does that goes on with the rest where something is refused, and returns the refusals.
func (p *parts) try(piece string) (refused []error) {
	p.t.Helper()
	for _, o := range p.piece(piece) {
		err := client.IgnoreNotFound(p.Client.Delete(p.t.Context(), o))
		switch {
		case apierrors.IsForbidden(err):
			refused = append(refused, err)
		case err != nil && !apierrors.IsConflict(err): // a namespace that is going says so
			p.t.Fatal(err)
		}
	}
	return refused
}

// While a KubeVirt is there nothing that it stands on can be deleted: the refusal names the one command that leads on, and
// nothing is left half-done.
func TestWhatAnInstallStandsOnStays(t *testing.T) {
	p := whole(t, v1.KubeVirtUninstallStrategyBlockUninstallIfWorkloadsExist)
	for piece, guarded := range map[string]int{"namespace": 1, "CRDs": len(p.definitions()), "operator": 7} {
		eventually(t, "the API server knows the guard", func() bool {
			return len(p.refusals(piece, "first delete it, which takes kubectl delete kubevirt -n kubevirt kubevirt")) == guarded
		})
	}
	p.manages = true
	p.rounds()
	p.held()
	vm := &v1.VirtualMachine{}
	if p.gone(vm, client.ObjectKeyFromObject(p.vm)) || vm.DeletionTimestamp != nil {
		t.Error("the VM is going")
	}
	p.others()
	p.take("VMs")
	p.controller()
	p.take("KubeVirt")
	for range 2 {
		p.round()
	}
	if refused := p.refusals("namespace", "is being removed and needs this until then"); len(refused) != 1 {
		t.Errorf("the namespace is deleted under a removal: %v", refused)
	}
	p.until("gone", func(kv *v1.KubeVirt) bool { return kv.UID == "" })
	p.clean()
}

// refusals are those of dry runs, each of which says why.
func (p *parts) refusals(piece, why string) (all []error) {
	p.t.Helper()
	for _, o := range p.piece(piece) {
		err := p.Client.Delete(p.t.Context(), o, client.DryRunAll)
		if err == nil {
			continue
		}
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), why) {
			p.t.Errorf("deleting %s: %v, want %q", o.GetName(), err, why)
		}
		all = append(all, err)
	}
	return all
}

// others checks that what isn't ours is deleted as ever.
func (p *parts) others() {
	p.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "others.cdi.kubevirt.io"}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "cdi.kubevirt.io", Scope: "Cluster", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "others", Kind: "Other"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}},
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "another"}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.vm.Namespace, Name: "kubevirt-operator"}}
	p.create(crd)
	eventually(p.t, "the other kind is served", func() bool { return !p.gone(crd, client.ObjectKeyFromObject(crd)) && served(*crd) })
	p.create(ns)
	p.create(account)
	for _, o := range []client.Object{crd, ns, account} {
		if err := p.Client.Delete(p.t.Context(), o); err != nil {
			p.t.Errorf("what isn't ours can't be deleted: %v", err)
		}
	}
	eventually(p.t, "the other kind is gone", func() bool { return p.gone(crd, client.ObjectKeyFromObject(crd)) })
}

// All is removed by one command, in whichever order it takes things, and by the same command again, as Git tools try
// again: nothing is left, no namespace is stuck, and the same directory installs at the first try.
func TestAllIsRemovedInOneCommandTriedAgain(t *testing.T) {
	block, remove := v1.KubeVirtUninstallStrategyBlockUninstallIfWorkloadsExist, v1.KubeVirtUninstallStrategyRemoveWorkloads
	for name, tc := range map[string]struct {
		strategy v1.KubeVirtUninstallStrategy
		order    []string
	}{
		"namespace, operator, KubeVirt, VMs": {block, []string{"namespace", "operator", "KubeVirt", "VMs", "CRDs"}},
		"CRDs, KubeVirt, operator":           {remove, []string{"CRDs", "KubeVirt", "operator", "namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := whole(t, tc.strategy)
			p.Controllers(t, "namespace-controller")
			eventually(t, "the API server knows the guard", func() bool { return len(p.refusals("namespace", "")) == 1 })
			p.swept(tc.order)
			p.clean()
			p.again()
			p.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}})
			p.until("Available once more", is("Available", "True"))
			p.take("KubeVirt")
			p.until("gone", func(kv *v1.KubeVirt) bool { return kv.UID == "" })
		})
	}
}

// swept tries to delete all pieces until there is nothing to delete.
func (p *parts) swept(order []string) {
	p.t.Helper()
	installed := true
	eventually(p.t, "nothing is left", func() bool {
		refused := 0
		for _, piece := range order {
			refused += len(p.try(piece))
		}
		if installed && refused == 0 {
			p.t.Fatal("what carries an install was deleted under it")
		}
		if installed {
			p.rounds()
			installed = !p.gone(&v1.KubeVirt{}, p.key)
			return false
		}
		return refused == 0 && len(p.nudged()) == 0 && p.gone(&corev1.Namespace{}, client.ObjectKey{Name: "kubevirt"})
	})
}
