package policies_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/gitops/policy"
	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/policies"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// manifest is a file of a policy's tests: an object, the parameters that it is judged by, if they aren't the policy's
// own, and, in a comment of the first line, what the refusal says.
type manifest struct {
	file, want     string
	params, object *unstructured.Unstructured
}

func manifests(t *testing.T, dir string, namespace func(testing.TB) string) []manifest {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "tests", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []manifest
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := manifest{file: file}
		first, _, _ := strings.Cut(string(text), "\n")
		if m.want = strings.TrimPrefix(first, "# "); m.want == first {
			m.want = ""
		}
		if refuses := strings.HasPrefix(filepath.Base(file), "fail-"); refuses != (m.want != "") {
			t.Fatalf("%s: a first line of what the refusal says goes with fail- in the name", file)
		}
		own := namespace(t)
		for _, doc := range bytes.Split(bytes.ReplaceAll(text, []byte("NAMESPACE"), []byte(own)), []byte("\n---\n")) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, &o.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if o.GetKind() == "ConfigMap" {
				m.params = o
				continue
			}
			o.SetNamespace(own)
			m.object = o
		}
		all = append(all, m)
	}
	return all
}

// pack returns a policy's objects, with other parameters if there are any.
func pack(t *testing.T, dir string, params *unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	built, err := build.Objects(t.Context(), policies.Files, dir, build.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, o := range built {
		if o.GetKind() == "ConfigMap" && params != nil {
			o.Object["data"] = params.Object["data"]
		}
		all = append(all, o.Unstructured)
	}
	return all
}

// request is what a manifest's annotations ask for: to be made, unless they say DELETE, by an administrator, unless they
// name another.
func (m manifest) request() policy.Request {
	asks := policy.Request{Object: m.object.DeepCopy(), User: "admin"}
	if u := m.object.GetAnnotations()["virtstack.io/test-user"]; u != "" {
		asks.User = u
	}
	if m.object.GetAnnotations()["virtstack.io/test-operation"] == "DELETE" {
		asks.Object, asks.Old = nil, asks.Object
		return asks
	}
	asks.Object.SetCreationTimestamp(metav1.Now()) // as the API server does before it asks
	return asks
}

func dirs(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*/policy.yaml")
	if err != nil || len(found) < 9 {
		t.Fatalf("policies: %v, %v", found, err)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found
}

// Each policy lets its pass- manifests through and refuses its fail- manifests with the words that they ask for, both
// without a server and on one; the server's words are the same.
func TestPoliciesJudgeTheirManifests(t *testing.T) {
	env := kubetest.Start(t)
	if err := env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"}}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs(t) {
		t.Run(dir, func(t *testing.T) {
			tests := map[bool]int{}
			for _, m := range manifests(t, dir, env.Namespace) {
				tests[m.want != ""]++
				said := offline(t, dir, m)
				if m.want == "" && said != "" || !strings.Contains(said, m.want) {
					t.Errorf("%s: offline: got %q, want %q", m.file, said, m.want)
				}
				onServer(t, env, dir, m, said)
			}
			if tests[true] == 0 || tests[false] == 0 {
				t.Errorf("it has %d manifests that pass and %d that fail, want some of each", tests[false], tests[true])
			}
		})
	}
}

func offline(t *testing.T, dir string, m manifest) string {
	t.Helper()
	set, err := policy.Read(pack(t, dir, m.params))
	if err != nil {
		t.Fatal(err)
	}
	found, err := set.Judge(t.Context(), m.request())
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, f := range found {
		said = append(said, f.Message)
	}
	return strings.Join(said, "; ")
}

// onServer waits until the server says of the manifest what is wanted: a policy is in force a moment after it is there.
func onServer(t *testing.T, env *kubetest.Env, dir string, m manifest, want string) {
	t.Helper()
	ctx := t.Context()
	asks := m.request()
	if asks.Old != nil {
		arrange(t, env, asks.Old)
		defer func() { _ = env.Client.Delete(ctx, asks.Old) }()
	}
	for _, o := range pack(t, dir, m.params) {
		if err := env.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = env.Client.Delete(context.WithoutCancel(ctx), o) }()
	}
	as := env.As(t, asks.User, []string{"system:masters"}, nil)
	said := "never asked"
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		said = ""
		var err error
		if asks.Old != nil {
			err = as.Delete(ctx, asks.Old.DeepCopy(), client.DryRunAll)
		} else {
			err = as.Create(ctx, m.object.DeepCopy(), client.DryRunAll)
		}
		if err != nil {
			said = err.Error()
		}
		return (want == "") == (said == "") && strings.Contains(said, want), nil
	})
	if err != nil {
		t.Errorf("%s: the server: got %q, want %q", m.file, said, want)
	}
}

// arrange makes an object and its status. The policy of the test before may be in force for a moment yet.
func arrange(t *testing.T, env *kubetest.Env, o *unstructured.Unstructured) {
	t.Helper()
	status, has := o.Object["status"]
	var refused error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		refused = env.Client.Create(ctx, o)
		return refused == nil, nil
	})
	if err != nil {
		t.Fatal(refused)
	}
	if !has {
		return
	}
	o.Object["status"] = status
	if err := env.Client.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// The pack as a whole is one kustomization, and its policies are told apart.
func TestThePackIsWhole(t *testing.T) {
	names := map[string]int{}
	for _, o := range pack(t, "", nil) {
		names[o.GetKind()+" "+o.GetName()]++
	}
	for _, dir := range dirs(t) {
		for _, name := range []string{"ValidatingAdmissionPolicy " + dir + ".policies.virtstack.io", "ValidatingAdmissionPolicyBinding " + dir + ".policies.virtstack.io", "ConfigMap policy-" + dir} {
			if names[name] != 1 {
				t.Errorf("%s is there %d times, want once", name, names[name])
			}
		}
	}
}
