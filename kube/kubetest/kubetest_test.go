package kubetest

import (
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { Main(m) }

func TestOneServerForAllTests(t *testing.T) {
	if a, b := Start(t), Start(t); a != b {
		t.Error("a second server was started")
	}
}

func TestNamespacesAreApart(t *testing.T) {
	e := Start(t)
	a, b := e.Namespace(t), e.Namespace(t)
	if a == b || a == "" {
		t.Errorf("got %q and %q", a, b)
	}
}

func TestOurKindsAreEstablished(t *testing.T) {
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := Start(t).Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, crd := range list.Items {
		names[crd.Name] = true
	}
	for _, want := range []string{"virtualmachines.kubevirt.io", "bundles.virtstack.io"} {
		if !names[want] {
			t.Errorf("%s is missing from %v", want, names)
		}
	}
}

func TestAnotherUserHasNoRights(t *testing.T) {
	e := Start(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace(t), Name: "a"}}
	if err := e.As(t, "eve", nil, nil).Create(t.Context(), cm); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"eve"`) {
		t.Errorf("got %v, want eve to be forbidden", err)
	}
	admin := e.As(t, "root", []string{"system:masters"}, map[string][]string{"node": {"node1"}})
	if err := admin.Create(t.Context(), cm); err != nil {
		t.Error(err)
	}
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
		t.Error(err)
	}
}

func TestKubectlIsThere(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), Start(t).Kubectl, "version", "--client").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v1.37") {
		t.Errorf("got %s %v", out, err)
	}
}
