package kubetest

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Controllers runs controllers of Kubernetes' own, named as the flag --controllers of kube-controller-manager takes them,
// on the API server until the test ends. Whatever else uses the server meanwhile has them too.
func (e *Env) Controllers(t testing.TB, names ...string) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := e.writeKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(e.Kubectl), "kube-controller-manager"),
		"--kubeconfig="+kubeconfig, "--controllers="+strings.Join(names, ","), "--leader-elect=false", "--secure-port=0",
		"--cert-dir="+dir, "--flex-volume-plugin-dir="+dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting controllers: %v", err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Errorf("the controllers have ended by themselves: %v\n%s", err, said.String())
		}
		_ = cmd.Wait() // it was killed
	})
}
