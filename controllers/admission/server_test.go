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
	"k8s.io/apimachinery/pkg/api/resource"
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
	filling := &admissionregistration.MutatingWebhookConfiguration{}
	content, err = os.ReadFile("../../bundles/components/virt-api/defaults-webhook.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(content, filling)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range filling.Webhooks {
		at := &filling.Webhooks[i].ClientConfig
		url := server.URL + *at.Service.Path
		at.URL, at.Service, at.CABundle = &url, nil, authority
	}
	for _, made := range []client.Object{config, filling} {
		if err := e.Client.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Client.Delete(context.Background(), made); err != nil {
				t.Error(err)
			}
		})
	}
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

	stored(t, e, ns)

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

// loose is the bare instance.
func loose(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.Replace(bare, "%s", "name: loose, namespace: "+namespace, 1)), &made.Object); err != nil {
		t.Fatal(err)
	}
	made.SetGroupVersionKind(instances)
	return made
}

func disksOf(u *unstructured.Unstructured) int {
	disks, _, _ := unstructured.NestedSlice(u.Object, "spec", "domain", "devices", "disks")
	return len(disks)
}

// stored makes an instance as its author would, again and again: its defaults are in it, and later applies change nothing.
func stored(t *testing.T, e *kubetest.Env, namespace string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		tried := loose(t, namespace)
		return e.Client.Create(ctx, tried, client.DryRunAll) == nil && disksOf(tried) == 2, nil
	})
	if err != nil {
		t.Fatalf("an instance isn't filled: %v", err)
	}
	var versions []string
	for range 3 {
		made := loose(t, namespace)
		if err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(made), client.FieldOwner("git")); err != nil {
			t.Fatalf("applying an instance: %v", err)
		}
		versions = append(versions, made.GetResourceVersion())
		memory, _, _ := unstructured.NestedString(made.Object, "spec", "domain", "memory", "guest")
		if disksOf(made) != 2 || memory != "1.5Gi" || made.GetGeneration() != 1 {
			t.Errorf("generation %d: got %d disks and memory %s", made.GetGeneration(), disksOf(made), memory)
		}
	}
	if versions[1] != versions[2] {
		t.Errorf("applying the same again wrote: resource version %s, then %s", versions[1], versions[2])
	}
	twin := &v1.VirtualMachineInstance{}
	twin.GenerateName, twin.Namespace = "twin-", namespace
	twin.Spec.Domain.Memory = &v1.Memory{Guest: resource.NewQuantity(128<<20, resource.BinarySI)}
	if err := e.Client.Create(t.Context(), twin); err != nil || twin.Spec.Domain.Firmware != nil {
		t.Errorf("got firmware %+v: %v", twin.Spec.Domain.Firmware, err)
	}
}

func label(t *testing.T, c client.Client, object client.Object, key string) error {
	t.Helper()
	changed := object.DeepCopyObject().(client.Object)
	changed.SetLabels(map[string]string{key: "node-1"})
	return c.Patch(t.Context(), changed, client.MergeFrom(object))
}
