package operator

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/kubetest/wire"
)

// Killed again and again, at a later write each time, an operator installs all, and at no moment is there an object of
// its own that the inventory doesn't name.
func TestKilledAtAnyWriteOfARollOut(t *testing.T) {
	i := begin(t)
	i.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}})
	kills := 0
	for at := 1; at <= 60; at++ {
		k := &wire.Kill{At: 1 + at%3, Late: at%2 == 0}
		i.process(k.Wrap)
		for range 4 {
			i.now = i.now.Add(time.Second)
			_, _ = i.certifier.Round(t.Context(), i.key, i.now) // what it can't do it does after its next start
			_, _ = i.installer.Round(t.Context(), i.key, i.now)
			if k.Killed() {
				break
			}
			i.startPods()
		}
		i.noOrphan()
		if k.Killed() {
			kills++
		}
	}
	if kills < 20 {
		t.Errorf("killed %d times: too few to have seen a roll-out", kills)
	}
	i.process(nil)
	i.until("Available", is("Available", "True"))
	i.noOrphan()
	if err := i.Client.Delete(t.Context(), &v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}}); err != nil {
		t.Fatal(err)
	}
	i.until("gone", func(kv *v1.KubeVirt) bool { return kv.UID == "" })
	if left := i.own(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// own returns the names of ClusterRoles and ServiceAccounts with the operator's labels.
func (i *install) own() (names []string) {
	i.t.Helper()
	labels := client.MatchingLabels(owner(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}}).Labels())
	var roles rbacv1.ClusterRoleList
	var accounts corev1.ServiceAccountList
	for _, list := range []client.ObjectList{&roles, &accounts} {
		if err := i.Client.List(i.t.Context(), list, labels); err != nil {
			i.t.Fatal(err)
		}
	}
	for _, r := range roles.Items {
		names = append(names, "_"+r.Name+"_rbac.authorization.k8s.io_ClusterRole")
	}
	for _, a := range accounts.Items {
		names = append(names, a.Namespace+"_"+a.Name+"__ServiceAccount")
	}
	return names
}

func (i *install) noOrphan() {
	i.t.Helper()
	m := &corev1.ConfigMap{}
	i.get(m, inventoryName)
	var recorded []string
	for line := range strings.Lines(m.Data[inventoryKey]) {
		id, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		recorded = append(recorded, id)
	}
	for _, id := range i.own() {
		if !slices.Contains(recorded, strings.ReplaceAll(id, ":", "__")) && !slices.Contains(recorded, id) {
			i.t.Errorf("%s is there and not in the inventory", id)
		}
	}
}
