package verdicts

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/admission"
	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/virtctl"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	kubetest.Main(m)
}

const configured = "testdata/kubevirt.cfg"

// serve installs the webhooks, at work under the corpus's configuration.
func serve(t *testing.T, e *kubetest.Env) {
	t.Helper()
	kv, hooks := &v1.KubeVirt{}, &admissionregistration.ValidatingWebhookConfiguration{}
	for path, into := range map[string]any{configured: kv, "../../bundles/components/virt-api/webhook.yaml": hooks} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(content, into); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewTLSServer(admission.Handler(admission.Cluster{
		Configuration: func(context.Context) (config.Config, error) { return config.From(kv), nil },
		May: func(context.Context, authorization.SubjectAccessReviewSpec) (bool, string, error) {
			return true, "", nil
		},
		Lists: e.Client, Live: e.Client,
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for i := range hooks.Webhooks {
		at := &hooks.Webhooks[i].ClientConfig
		url := server.URL + *at.Service.Path
		at.URL, at.Service, at.CABundle = &url, nil, authority
	}
	if err := e.Client.Create(t.Context(), hooks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Client.Delete(context.Background(), hooks); err != nil {
			t.Error(err)
		}
	})
	wrong := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": map[string]any{"name": "probe", "namespace": e.Namespace(t)},
		"spec": map[string]any{"infra": map[string]any{"replicas": int64(0)}},
	}}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsInvalid(e.Client.Create(ctx, wrong.DeepCopy(), client.DryRunAll)), nil
	})
	if err != nil {
		t.Fatalf("the webhooks are not asked: %v", err)
	}
}

// offline is virtctl's verdict: whether it is valid, and the fields that are not.
func offline(t *testing.T, text string) (bool, []string) {
	t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(text), Out: &out, ErrOut: &errOut}
	code := virtctl.Run(t.Context(), streams, []string{"virtctl", "validate", "-f", configured, "-f", "-", "-o", "json"})
	var r struct {
		Findings []struct {
			Field   string
			Warning bool
		}
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || code > 1 {
		t.Fatalf("code %d: %v: %s", code, err, errOut.String())
	}
	var fields []string
	for _, f := range r.Findings {
		if !f.Warning {
			fields = append(fields, f.Field)
		}
	}
	slices.Sort(fields)
	return code == 0, fields
}

// online is the server's.
func online(t *testing.T, e *kubetest.Env, namespace, text string) (bool, []string, error) {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetNamespace(namespace)
	err := e.Client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
	var refused *apierrors.StatusError
	if !errors.As(err, &refused) {
		return err == nil, nil, err
	}
	var fields []string
	if d := refused.ErrStatus.Details; d != nil {
		for _, cause := range d.Causes {
			fields = append(fields, cause.Field)
		}
	}
	slices.Sort(fields)
	return false, fields, err
}

func TestVirtctlAndAServerAgree(t *testing.T) {
	e := kubetest.Start(t)
	ns := e.Namespace(t)
	serve(t, e)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[bool]int{}
		for _, text := range strings.Split(string(content), "---\n") {
			name := strings.TrimSuffix(strings.Fields(text[strings.Index(text, "{name: ")+7:])[0], "}")
			want := strings.HasPrefix(name, "ok-")
			seen[want]++
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				mine, fields := offline(t, text)
				server, causes, err := online(t, e, ns, text)
				if mine != want || server != want {
					t.Errorf("virtctl says %v (%q), the server %v (%v); want %v", mine, fields, server, err, want)
				}
				if len(causes) > 0 && !slices.Equal(fields, causes) {
					t.Errorf("virtctl names %q, the server %q", fields, causes)
				}
			})
		}
		if seen[true] == 0 || seen[false] == 0 {
			t.Errorf("%s has %d that pass and %d that don't: it must have both", file, seen[true], seen[false])
		}
	}
}

// A second apply of a committed machine changes nothing: admission only looks.
func TestApplyingTwiceChangesNothing(t *testing.T) {
	e := kubetest.Start(t)
	ns := e.Namespace(t)
	serve(t, e)
	files, err := filepath.Glob("../../examples/vms/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no examples: %v", err)
	}
	for _, file := range append(files, "testdata/devices.yaml", "testdata/network.yaml", "testdata/mac.yaml", "testdata/memory.yaml", "testdata/volumes.yaml") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Split(string(content), "\n---\n")[0]
		var stored []*unstructured.Unstructured
		for range 3 {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatal(err)
			}
			o.SetNamespace(ns)
			if err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("git")); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			stored = append(stored, o)
		}
		// The second stores the default of status with the object, which a controller would have done meanwhile.
		first, second, third := stored[0], stored[1], stored[2]
		if second.GetResourceVersion() != third.GetResourceVersion() || third.GetGeneration() != 1 {
			t.Errorf("%s: resource version %s, then %s; generation %d", file, second.GetResourceVersion(), third.GetResourceVersion(), third.GetGeneration())
		}
		if !equality.Semantic.DeepEqual(first.Object["spec"], third.Object["spec"]) {
			t.Errorf("%s: the spec was %v and is %v", file, first.Object["spec"], third.Object["spec"])
		}
	}
}
