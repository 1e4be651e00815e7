package operator

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/source/sourcetest"
	"virtstack.io/virtstack/machine/names"
)

// pinned is what a platform team keeps beside its copy of the component bundle.
const pinned = `resources: [../components]
configurations: [../components/images.yaml]
images: [{name: virtstack, newName: mirror.example.test/virtstack, digest: DIGEST}]
patches:
- target: {kind: Deployment, name: virt-api}
  patch: '[{"op": "add", "path": "/metadata/labels", "value": {"team": "platform"}}]'
`

const digestOne, digestTwo = "sha256:1111111111111111111111111111111111111111111111111111111111111111", "sha256:2222222222222222222222222222222222222222222222222222222222222222"

// publish commits the component bundle and what is laid over it.
func publish(t *testing.T) *sourcetest.Repository {
	t.Helper()
	repo := sourcetest.Serve(t)
	files := components(t, "")
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err == nil {
			repo.Commit("components/"+name, string(data))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	repo.Commit("components/kustomization.yaml", "namespace: kubevirt\nresources: [priorityclass.yaml, roles, operator-webhook.yaml, virt-handler, virt-controller, virt-api]\n")
	repo.Commit("platform/kustomization.yaml", strings.ReplaceAll(pinned, "DIGEST", digestOne))
	return repo
}

func (i *install) api(t *testing.T) (image string, labels map[string]string) {
	t.Helper()
	d := &appsv1.Deployment{}
	if !i.get(d, "virt-api") {
		t.Fatal("there is no virt-api")
	}
	return d.Spec.Template.Spec.Containers[0].Image, d.Labels
}

// A platform team pins and patches the components in its repository: what the Bundle leads to that the KubeVirt names is
// installed, a commit rolls them and its revert goes back; and what can't be taken changes nothing.
func TestComponentsComeFromGit(t *testing.T) {
	i := begin(t)
	repo := publish(t)
	b := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "platform"}}
	b.Spec.Source.Git = &v1alpha1.GitSource{URL: repo.URL, Ref: v1alpha1.GitRef{Branch: "main"}}
	b.Spec.Path, b.Spec.Interval = "platform", &metav1.Duration{Duration: time.Minute}
	i.create(b)
	defer func() {
		if err := i.Client.Delete(t.Context(), b); err != nil {
			t.Error(err)
		}
	}()
	i.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt", Annotations: map[string]string{names.Components: "platform"}}})
	defer i.remove(t)

	i.round()
	if kv := i.round(); !is("Synchronized", "False")(kv) || !strings.Contains(kv.Status.Conditions[0].Message, "spec.suspend: Invalid value: false: must be true") {
		t.Errorf("a Bundle that virt-bundles applies: %v", kv.Status.Conditions)
	}
	i.suspend(t, b)
	kv := i.until("Available", is("Available", "True"))
	if image, labels := i.api(t); image != "mirror.example.test/virtstack@"+digestOne || labels["team"] != "platform" {
		t.Errorf("virt-api has image %s and labels %v", image, labels)
	}
	if !strings.Contains(kv.Status.ObservedDeploymentConfig, `"components":"main@sha1:`) {
		t.Errorf("the revision is not told: %s", kv.Status.ObservedDeploymentConfig)
	}
	for _, digest := range []string{digestTwo, digestOne} {
		repo.Commit("platform/kustomization.yaml", strings.ReplaceAll(pinned, "DIGEST", digest))
		i.now = i.now.Add(2 * time.Minute)
		i.round()
		i.until("rolled", is("Progressing", "False"))
		if image, _ := i.api(t); !strings.HasSuffix(image, digest) {
			t.Errorf("after a commit of %s virt-api has image %s", digest, image)
		}
	}
	t.Run("what is incomplete removes nothing", func(t *testing.T) {
		repo.Commit("platform/kustomization.yaml", "resources: [../components/roles]\n")
		i.now = i.now.Add(2 * time.Minute)
		if kv := i.round(); !is("Synchronized", "False")(kv) || !strings.Contains(kv.Status.Conditions[0].Message, "it has no DaemonSet virt-handler") {
			t.Errorf("a bundle without workloads: %v", kv.Status.Conditions)
		}
		i.stays(t)
		repo.Commit("platform/kustomization.yaml", strings.ReplaceAll(pinned, "DIGEST", digestOne))
		i.until("mended", is("Available", "True"))
	})
	t.Run("what was taken before is kept up while there is no telling what is newest", func(t *testing.T) { i.keepsUp(t, repo) })
	t.Run("a server that is away changes nothing", func(t *testing.T) {
		b.Spec.Source.Git.URL = "http://127.0.0.1:1/away.git"
		if err := i.Client.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		kv := i.round()
		if !is("Available", "True")(kv) || !is("Synchronized", "False")(kv) {
			t.Errorf("with a server that is away: %v", kv.Status.Conditions)
		}
	})
}

// stays checks that a commit which can't be taken takes nothing away: what runs is available and kept up, and its KubeVirt
// names the commit.
func (i *install) stays(t *testing.T) {
	t.Helper()
	if err := i.Client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-controller"}}); err != nil {
		t.Fatal(err)
	}
	i.round()
	kv := i.until("kept up", is("Available", "True"))
	if !is("Degraded", "True")(kv) || !is("Stalled", "True")(kv) || !strings.Contains(kv.Status.Conditions[0].Message, "main@sha1:") {
		t.Errorf("with a commit that isn't taken: %v", kv.Status.Conditions)
	}
	restarted := *i.installer // it knows nothing of what was taken before
	restarted.content = nil
	i.installer = &restarted
	if kv := i.round(); !is("Available", "True")(kv) || !is("Stalled", "True")(kv) || kv.Status.ObservedDeploymentID == "" {
		t.Errorf("after a restart of the operator: %v", kv.Status.Conditions)
	}
	if image, _ := i.api(t); !strings.HasSuffix(image, digestOne) {
		t.Errorf("virt-api has image %s", image)
	}
}

// keepsUp checks that components come back while the branch that they are of is away.
func (i *install) keepsUp(t *testing.T, repo *sourcetest.Repository) {
	t.Helper()
	repo.Git("branch", "-m", "main", "away")
	if err := i.Client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-api"}}); err != nil {
		t.Fatal(err)
	}
	i.now = i.now.Add(2 * time.Minute)
	i.round()
	if kv := i.until("back", is("Available", "True")); !is("Synchronized", "False")(kv) || !strings.Contains(fmt.Sprint(kv.Status.Conditions), "Bundle kubevirt/platform: fetching branch main") {
		t.Errorf("with a branch that is away: %v", kv.Status.Conditions)
	}
	if image, _ := i.api(t); !strings.HasSuffix(image, digestOne) {
		t.Errorf("virt-api came back with image %s", image)
	}
	repo.Git("branch", "-m", "away", "main")
	i.now = i.now.Add(2 * time.Minute)
	i.until("as it was", is("Synchronized", ""))
}

func (i *install) suspend(t *testing.T, b *v1alpha1.Bundle) {
	t.Helper()
	if err := i.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	b.Spec.Suspend = true
	if err := i.Client.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}
