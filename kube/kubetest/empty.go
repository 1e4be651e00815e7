package kubetest

import (
	"errors"
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
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := e.writeKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	return e, kubeconfig
}

// Audited starts an API server with our CRDs for a program that isn't a test, and writes to dir the file kubeconfig, an
// administrator's, and as it goes the file audit.log, a line for each request. Stop it at the end.
func Audited(dir string) (e *Env, stop func() error, err error) {
	root, err := findRoot()
	if err != nil {
		return nil, nil, err
	}
	policy := filepath.Join(dir, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, nil, err
	}
	e, err = startWith(crds(root), "audit-policy-file="+policy, "audit-log-path="+filepath.Join(dir, "audit.log"))
	if err != nil {
		return nil, nil, err
	}
	if err := e.writeKubeconfig(filepath.Join(dir, "kubeconfig")); err != nil {
		return nil, nil, errors.Join(err, e.env.Stop())
	}
	return e, e.env.Stop, nil
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
`

func (e *Env) writeKubeconfig(path string) error {
	user, err := e.env.AddUser(envtest.User{Name: "kubetest", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	raw, err := user.KubeConfig()
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}
