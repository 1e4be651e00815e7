package operator

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/names"
	product "virtstack.io/virtstack/machine/release"
)

// another is the components of a release that needs other rights and serves other webhooks.
func another(t *testing.T) fstest.MapFS {
	t.Helper()
	files := components(t, "").(fstest.MapFS)
	old := string(files["virt-api/all.yaml"].Data)
	changed := strings.NewReplacer("resources: [pods]", "resources: [nodes]", "path: /x", "path: /y").Replace(old)
	if changed == old {
		t.Fatal("the other release is the same")
	}
	files["virt-api/all.yaml"] = &fstest.MapFile{Data: []byte(changed)}
	return files
}

// grants returns what virt-api may reach by its cluster role.
func (i *install) grants() (resources []string) {
	i.t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := i.Client.Get(i.t.Context(), client.ObjectKey{Name: "kubevirt-apiserver"}, role); err != nil {
		i.t.Fatal(err)
	}
	for _, r := range role.Rules {
		resources = append(resources, r.Resources...)
	}
	slices.Sort(resources)
	return resources
}

func (i *install) paths() (all []string) {
	for _, h := range i.hook().Webhooks {
		all = append(all, *h.ClientConfig.Service.Path)
	}
	return all
}

func (i *install) deploy(t *testing.T) {
	t.Helper()
	i.create(&v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}})
	i.until("Available", is("Available", "True"))
}

func (i *install) remove(t *testing.T) {
	t.Helper()
	if err := i.Client.Delete(t.Context(), &v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}}); err != nil {
		t.Error(err)
	}
	i.until("gone", func(kv *v1.KubeVirt) bool { return kv.UID == "" })
}

// There and back again: while programs of two releases run, each has the rights it needs, and the API server asks no
// webhook that one of them doesn't serve.
func TestARollOutLeavesNoMixThatRefuses(t *testing.T) {
	i := begin(t)
	i.deploy(t)
	defer i.remove(t)
	one, two := i.installer.files, another(t)
	i.rolls(t, two, "2", "nodes", "/y")
	i.rolls(t, one, "1", "pods", "/x")
}

// rolls changes the release and looks at every round.
func (i *install) rolls(t *testing.T, files fs.FS, tag, right, path string) {
	t.Helper()
	i.installer.files, i.installer.images.Component = files, "localhost/virtstack:"+tag
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"platform"}}}`))
	if err := i.Client.Patch(t.Context(), i.hook(), label, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	mixed := 0
	i.until("rolled to "+tag, func(kv *v1.KubeVirt) bool {
		done := kv.Status.ObservedDeploymentID == kv.Status.TargetDeploymentID
		d := &appsv1.Deployment{}
		i.get(d, "virt-api")
		swapped := strings.HasSuffix(d.Spec.Template.Spec.Containers[0].Image, ":"+tag)
		both := d.Status.ObservedGeneration != d.Generation
		if swapped && both {
			mixed++
			i.foreign(t)
			if granted := i.grants(); !slices.Equal(granted, []string{"nodes", "pods"}) {
				t.Errorf("with Pods of both releases: virt-api may reach %v", granted)
			}
			if paths := i.paths(); len(paths) > 0 {
				t.Errorf("with Pods of both releases: the API server asks %v", paths)
			}
		}
		return done
	})
	if granted, paths := i.grants(), i.paths(); mixed == 0 || !slices.Equal(granted, []string{right}) || !slices.Equal(paths, []string{path}) {
		t.Errorf("after rolling to %s (%d rounds with both): virt-api may reach %v, the API server asks %v", tag, mixed, granted, paths)
	}
}

// foreign checks that a label which somebody else has put on the webhooks is there, and theirs.
func (i *install) foreign(t *testing.T) {
	t.Helper()
	hook := i.hook()
	if hook.Labels["team"] != "platform" || slices.Contains(i.installer.status.Keys(hook, "labels"), "team") {
		t.Errorf("between two releases the webhooks have labels %v, of which %v are the operator's", hook.Labels, i.installer.status.Keys(hook, "labels"))
	}
}

// An image that doesn't exist halts the roll-out there and then: the condition names the Pod, the image and the reason,
// what comes after is as it was, and taking the change back goes on.
func TestAStepThatCantSucceedHaltsTheRollOut(t *testing.T) {
	i := begin(t)
	i.deploy(t)
	defer i.remove(t)
	good := i.installer.images
	i.installer.images.Component = "localhost/virtstack:missing"
	handler := &appsv1.DaemonSet{}
	for range 10 {
		i.round()
		if i.get(handler, "virt-handler"); handler.Spec.Template.Spec.Containers[0].Image == i.installer.images.Component {
			break
		}
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-handler-x", Labels: map[string]string{"kubevirt.io": "virt-handler"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "kubevirt-handler", Containers: []corev1.Container{{Name: "c", Image: "localhost/virtstack:missing"}}},
	}
	i.create(p)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c", Image: "localhost/virtstack:missing",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}},
	}}
	i.update(p)
	kv := i.round()
	for _, want := range []string{"virt-handler", "Pod kubevirt/virt-handler-x", "localhost/virtstack:missing", "ImagePullBackOff: not found"} {
		if !is("Synchronized", "False")(kv) || !strings.Contains(kv.Status.Conditions[0].Message, want) {
			t.Errorf("no %q in %v", want, kv.Status.Conditions)
		}
	}
	for range 3 {
		i.round()
	}
	d := &appsv1.Deployment{}
	for _, name := range []string{"virt-controller", "virt-api"} {
		if i.get(d, name); d.Spec.Template.Spec.Containers[0].Image != good.Component {
			t.Errorf("%s was rolled to %s after a step had failed", name, d.Spec.Template.Spec.Containers[0].Image)
		}
	}
	i.installer.images = good
	if err := i.Client.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	i.until("back", func(kv *v1.KubeVirt) bool { return is("Available", "True")(kv) && is("Degraded", "False")(kv) })
}

// The operator waits for CRDs that are missing or of an older release, and says which.
func TestCRDsAreWaitedFor(t *testing.T) {
	i := begin(t)
	i.deploy(t)
	defer i.remove(t)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := i.Client.Get(t.Context(), client.ObjectKey{Name: "virtualmachinepools.pool.kubevirt.io"}, crd); err != nil {
		t.Fatal(err)
	}
	stamp := func(release string) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, names.Release, release)
		if err := i.Client.Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	stamp("v0.0.1")
	kv := i.round()
	const want = "virtualmachinepools.pool.kubevirt.io is of v0.0.1; this operator needs those of v0.1"
	if !is("Progressing", "True")(kv) || !strings.Contains(kv.Status.Conditions[0].Message, want) {
		t.Errorf("with an old CRD: %v", kv.Status.Conditions)
	}
	stamp(product.Version)
	i.until("Available", is("Progressing", "False"))
}
