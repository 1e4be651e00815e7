package kubetest

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Empty returns an API server of the test's own, in which nothing of ours is, not even CRDs, and the path of an
// administrator's kubeconfig. It stops when the test ends.
func Empty(t testing.TB) (env *Env, kubeconfig string) {
	t.Helper()
	e, err := startWith(nil)
	if err != nil {
		t.Fatalf("starting an API server: %v", err)
	}
	t.Cleanup(func() {
		if err := e.env.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	user, err := e.env.AddUser(envtest.User{Name: "kubetest", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return e, kubeconfig
}
