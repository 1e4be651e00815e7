package admission_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/admission"
	"virtstack.io/virtstack/kube/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// install serves the webhooks and installs the configuration of the component bundle, pointed at them.
// stop takes them away.
func install(t *testing.T, e *kubetest.Env) (stop func()) {
	t.Helper()
	content, err := os.ReadFile("../../bundles/components/virt-api/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := &admissionregistration.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(content, config); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(admission.Handler(admission.Cluster{Configuration: plain, May: anybody, Lists: e.Client, Live: e.Client}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for i := range config.Webhooks {
		at := &config.Webhooks[i].ClientConfig
		url := server.URL + *at.Service.Path
		at.URL, at.Service, at.CABundle = &url, nil, authority
	}
	if err := e.Client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Client.Delete(context.Background(), config); err != nil {
			t.Error(err)
		}
	})
	return server.Close
}

var (
	machines   = v1.VirtualMachineGroupVersionKind
	instances  = v1.VirtualMachineInstanceGroupVersionKind
	deprecated = schema.GroupVersionKind{Group: machines.Group, Version: "v1alpha3", Kind: machines.Kind}
)

// object is a VirtualMachine or VirtualMachineInstance with that much memory.
func object(t *testing.T, id schema.GroupVersionKind, key client.ObjectKey, memory string) *unstructured.Unstructured {
	t.Helper()
	text := vmiYAML("", memory)
	if id.Kind == machines.Kind {
		text = machineYAML("", "runStrategy: Halted", "", memory)
	}
	made := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &made.Object); err != nil {
		t.Fatal(err)
	}
	made.SetGroupVersionKind(id)
	made.SetNamespace(key.Namespace)
	made.SetName(key.Name)
	return made
}

// refused waits until the API server has read the configuration, then returns its refusal.
func refused(t *testing.T, e *kubetest.Env, wrong client.Object) *apierrors.StatusError {
	t.Helper()
	var status *apierrors.StatusError
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			err := e.Client.Create(ctx, wrong.DeepCopyObject().(client.Object), client.DryRunAll)
			return errors.As(err, &status), nil
		})
	if err != nil {
		t.Fatalf("nothing refused the object: %v", err)
	}
	return status
}

// TestOnARealServer shows the webhooks at work, and that what must not wait for them does not when they are
// away.
func TestOnARealServer(t *testing.T) {
	e := kubetest.Start(t)
	ns := e.Namespace(t)
	vm := func(name, memory string) *unstructured.Unstructured {
		return object(t, machines, client.ObjectKey{Namespace: ns, Name: name}, memory)
	}
	old, vmi := vm("old", "0"), object(t, instances, client.ObjectKey{Namespace: ns, Name: "web"}, "128Mi")
	for _, early := range []client.Object{old, vmi} {
		if err := e.Client.Create(t.Context(), early); err != nil {
			t.Fatal(err) // no rule stood when it was made
		}
	}
	stop := install(t, e)

	status := refused(t, e, vm("web", "0")).ErrStatus
	cause := status.Details.Causes[0]
	if status.Code != 422 || cause.Field != "spec.template.spec.domain.memory.guest" || !strings.Contains(cause.Message, `"0"`) {
		t.Errorf("got %+v", status)
	}
	if err := e.Client.Create(t.Context(), vm("web", "128Mi")); err != nil {
		t.Errorf("creating a good machine: %v", err)
	}
	alpha := object(t, deprecated, client.ObjectKey{Namespace: ns, Name: "alpha"}, "0")
	if err := e.Client.Create(t.Context(), alpha); !apierrors.IsInvalid(err) {
		t.Errorf("through the deprecated version: got %v", err)
	}
	if err := label(t, e.Client, vmi, "kubevirt.io/nodeName"); !apierrors.IsInvalid(err) {
		t.Errorf("placing an instance by hand: got %v", err)
	}

	stop()
	if err := e.Client.Create(t.Context(), vm("late", "128Mi")); !apierrors.IsInternalError(err) {
		t.Errorf("a machine was created without review: %v", err)
	}
	if err := label(t, e.Client, old, "other"); err != nil {
		t.Errorf("changing metadata of a machine: %v", err)
	}
	if err := label(t, e.As(t, machine, []string{"system:masters"}, nil), vmi, "kubevirt.io/nodeName"); err != nil {
		t.Errorf("placing an instance as virt-controller: %v", err)
	}
	if err := e.Client.Delete(t.Context(), old); err != nil {
		t.Errorf("deleting a machine: %v", err)
	}
}

func label(t *testing.T, c client.Client, object client.Object, key string) error {
	t.Helper()
	changed := object.DeepCopyObject().(client.Object)
	changed.SetLabels(map[string]string{key: "node-1"})
	return c.Patch(t.Context(), changed, client.MergeFrom(object))
}
