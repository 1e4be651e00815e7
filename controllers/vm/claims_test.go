package vm_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/machine/names"
)

// ours applies what virt-controller's account may do.
func ours(t *testing.T, e *kubetest.Env) {
	t.Helper()
	for _, file := range []string{"rbac.yaml", "policy.yaml"} {
		content, err := os.ReadFile(filepath.Join("..", "..", "bundles", "components", "virt-controller", file))
		if err != nil {
			t.Fatal(err)
		}
		docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			o := &unstructured.Unstructured{}
			if err := docs.Decode(o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if kind := o.GetKind(); kind == "ServiceAccount" || kind == "Role" || kind == "RoleBinding" {
				continue // of the namespace that isn't there
			}
			if err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// virt-controller's account writes the name of a memory dump on a claim, and whoever has stolen it changes nothing else
// of claims.
func TestOfAClaimOnlyTheDumpsNameIsWritten(t *testing.T) {
	e := kubetest.Start(t)
	ours(t, e)
	ns := e.Namespace(t)
	account := e.As(t, "system:serviceaccount:"+names.Namespace+":kubevirt-controller", []string{"system:serviceaccounts", "system:authenticated"}, nil)
	claim := &k8sv1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "claim", Labels: map[string]string{"a": "b"}}}
	claim.Spec.AccessModes = []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadWriteOnce}
	claim.Spec.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceStorage: resource.MustParse("1Gi")}
	put(t, e.Client, claim)
	patch := func(body string, opts ...client.PatchOption) error {
		return account.Patch(t.Context(), claim.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), opts...)
	}
	// A new policy takes a moment.
	until(t, e.Client, claim, func() bool {
		return apierrors.IsForbidden(patch(`{"metadata":{"labels":{"x":"y"}}}`, client.DryRunAll))
	})
	for _, body := range []string{
		`{"metadata":{"labels":{"a":null}}}`, `{"metadata":{"annotations":{"x":"y"}}}`, `{"metadata":{"finalizers":["x.io/y"]}}`,
		`{"spec":{"volumeName":"another"}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"y"}]}}`,
	} {
		if err := patch(body); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{
		`{"metadata":{"annotations":{"` + v1.PVCMemoryDumpAnnotation + `":"web.memory.dump"}}}`,
		`{"metadata":{"annotations":{"` + v1.PVCMemoryDumpAnnotation + `":null}}}`,
	} {
		if err := patch(body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}
