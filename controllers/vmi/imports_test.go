package vmi

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func dataVolume(name, uid, phase string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(dataVolumes)
	u.SetNamespace("vms")
	u.SetName(name)
	u.SetUID(types.UID(uid))
	if phase != "" {
		u.Object["status"] = map[string]any{"phase": phase}
	}
	return u
}

func madeBy(apiVersion, kind, name, uid string) *k8sv1.PersistentVolumeClaim {
	yes := true
	return &k8sv1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes},
	}}}
}

func TestImportsOfClaims(t *testing.T) {
	const cdi, kind = "cdi.kubevirt.io/v1beta1", "DataVolume"
	claims := map[string]*k8sv1.PersistentVolumeClaim{
		"done": madeBy(cdi, kind, "done", "u-1"), "new": madeBy(cdi, kind, "new", "u-2"), "gone": madeBy(cdi, kind, "gone", "u-3"),
		"namesake": madeBy(cdi, kind, "namesake", "u-4"), "other": madeBy("example.com/v1", kind, "done", "u-1"),
		"set": madeBy("apps/v1", "StatefulSet", "done", "u-1"), "plain": {}, "missing": nil,
	}
	live := fake.NewClientBuilder().WithObjects(dataVolume("done", "u-1", "Succeeded"), dataVolume("new", "u-2", ""), dataVolume("namesake", "u-5", "Failed")).Build()
	got, err := imports(t.Context(), live, claims)
	if d := cmp.Diff(map[string]string{"done": "Succeeded", "new": ""}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// A cluster without DataVolumes has claims that were made by some before.
func TestAClusterWithoutDataVolumes(t *testing.T) {
	without := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return &meta.NoKindMatchError{GroupKind: dataVolumes.GroupKind()}
	}}
	live := fake.NewClientBuilder().WithInterceptorFuncs(without).Build()
	got, err := imports(t.Context(), live, map[string]*k8sv1.PersistentVolumeClaim{"c": madeBy("cdi.kubevirt.io/v1beta1", "DataVolume", "c", "u-1")})
	if err != nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
