package bundle

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

// No program is run for a commit (threat G1): not to fetch it, not to check its signature, not to build it, nor because it
// asks for that. Each program that other tools would run for it leaves a mark here, and is the only one to be found.
func TestNothingIsRunForACommit(t *testing.T) {
	x := start(t)
	key := sourcetest.NewKey(t)
	x.keys("Secret", key)
	x.bundle.Spec.Source.Git.Verify = &v1alpha1.GitVerification{SecretRef: &v1alpha1.LocalObjectReference{Name: "signers"}}
	x.repo.SignSSH(key)
	bin, marks, path := t.TempDir(), filepath.Join(t.TempDir(), "marks"), os.Getenv("PATH")
	for _, name := range []string{"git", "sh", "bash", "ssh", "ssh-keygen", "gpg", "helm", "kustomize", "kubectl", "sops"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho \"$0 $*\" >> "+marks+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	settle := func() *v1alpha1.Bundle {
		t.Setenv("PATH", bin)
		defer t.Setenv("PATH", path)
		return x.settle()
	}
	x.repo.Write(".gitattributes", "* filter=mark\n")
	x.repo.Write(".gitmodules", "[submodule \"m\"]\n\tpath = m\n\turl = ext::sh -c touch% "+marks+"\n")
	x.repo.Write("kustomization.yaml", "resources: [a.yaml]\n")
	hash := x.repo.SignedCommit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.ready(settle(), "main@sha1:"+hash)
	for _, field := range []string{"generators", "transformers", "validators"} {
		x.repo.Write("plugin.yaml", "apiVersion: x.test/v1\nkind: X\nmetadata:\n  name: x\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n")
		x.repo.Write("run.sh", "#!/bin/sh\ntouch "+marks+"\n")
		hash = x.repo.SignedCommit("kustomization.yaml", "resources: [a.yaml]\n"+field+": [plugin.yaml]\n")
		x.failed(settle(), "BuildFailed", hash, field)
	}
	hash = x.repo.SignedCommit("kustomization.yaml", "resources: [a.yaml]\nhelmCharts: [{name: x, repo: 'https://example.test'}]\n")
	x.failed(settle(), "BuildFailed", hash, "helm")
	if said, err := os.ReadFile(marks); err == nil {
		t.Errorf("run: %s", said)
	}
	if !x.exists(&corev1.ConfigMap{}, "a") {
		t.Error("what was applied is gone")
	}
}
