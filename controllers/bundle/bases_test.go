package bundle

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"virtstack.io/virtstack/gitops/source/sourcetest"
)

// A commit of another repository is a base where that repository is allowed, and nowhere else.
func TestBasesOfOtherRepositories(t *testing.T) {
	x := start(t)
	platform := sourcetest.Serve(t)
	platform.Write("base/kustomization.yaml", "resources: [shared.yaml]\n")
	pin := platform.Commit("base/shared.yaml", settings("shared", "one"))
	x.repo.Commit("kustomization.yaml", "resources: ['"+platform.URL+"//base?ref="+pin+"']\nnamePrefix: our-\n")
	x.create(x.bundle)
	x.failed(x.settle(), "BuildFailed", platform.URL, "--allow-remote-bases")

	x.controller.bases = []string{platform.URL[:strings.LastIndex(platform.URL, "/")]}
	hash := x.repo.Commit("README", "look again\n")
	x.ready(x.settle(), "main@sha1:"+hash)
	var m corev1.ConfigMap
	if !x.exists(&m, "our-shared") || m.Data["value"] != "one" {
		t.Errorf("the base's object: %v", m.Data)
	}

	x.repo.Commit("kustomization.yaml", "resources: ['"+platform.URL+"//base?ref=main']\n")
	x.failed(x.settle(), "BuildFailed", `ref is "main", want a whole commit`)
	x.repo.Commit("kustomization.yaml", "resources: ['"+platform.URL+"//base?ref="+strings.Repeat("1", 40)+"']\n")
	x.failed(x.settle(), "FetchFailed", strings.Repeat("1", 40))
	if !x.exists(&m, "our-shared") {
		t.Error("what was applied is gone")
	}
}
