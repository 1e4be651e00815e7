package operator

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const aggregated = `---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.subresources.kubevirt.io}
spec:
  group: subresources.kubevirt.io
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {name: virt-api, namespace: kubevirt, port: 443}
`

// registered returns the API service, nil if there is none.
func (i *install) registered() *unstructured.Unstructured {
	i.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	err := i.Client.Get(i.t.Context(), client.ObjectKey{Name: "v1.subresources.kubevirt.io"}, u)
	if client.IgnoreNotFound(err) != nil {
		i.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return u
}

// stop makes a workload one without a ready Pod.
func (i *install) stop(workloads ...client.Object) {
	i.t.Helper()
	for _, o := range workloads {
		i.get(o, o.GetName())
		switch w := o.(type) {
		case *appsv1.Deployment:
			w.Status = appsv1.DeploymentStatus{ObservedGeneration: w.Generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1}
		case *appsv1.DaemonSet:
			w.Status = appsv1.DaemonSetStatus{ObservedGeneration: w.Generation, DesiredNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberUnavailable: 1}
		}
		i.update(o)
	}
}

// Somebody scales virt-api to nothing: it is put back in the next round.
func TestVirtAPIIsScaledBack(t *testing.T) {
	i := begin(t)
	i.deploy(t)
	defer i.remove(t)
	api := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-api"}}
	none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	if err := i.Client.Patch(t.Context(), api, none, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	i.round()
	if i.get(api, "virt-api"); *api.Spec.Replicas == 0 {
		t.Error("virt-api stays at 0 replicas")
	}
}

// An API whose server is away keeps every namespace of the cluster from ending. The operator withdraws it after a minute,
// brings it back with its server, and waits for nothing else then.
func TestNamespacesEndWhileVirtAPIIsAway(t *testing.T) {
	i := begin(t)
	i.deploy(t)
	defer i.remove(t)
	i.Controllers(t, "namespace-controller")
	i.installer.files = components(t, aggregated)
	i.until("registered", func(*v1.KubeVirt) bool { return i.registered() != nil })
	eventually(t, "the API server knows that nobody serves it", func() bool {
		since, err := away(i.registered())
		return err == nil && !since.IsZero()
	})
	api := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "virt-api"}}
	handler := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "virt-handler"}}
	i.stop(api, handler)
	i.now = time.Now()
	i.round()
	if i.registered() == nil {
		t.Fatal("withdrawn at once: a restart of virt-api takes its verbs away")
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.Namespace(t)}}
	if err := i.Client.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace waits for the API", func() bool {
		if err := i.Client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
			t.Fatal(err)
		}
		for _, c := range ns.Status.Conditions {
			if c.Type == corev1.NamespaceDeletionDiscoveryFailure && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	})
	i.now = time.Now().Add(2 * time.Minute)
	i.round()
	if i.registered() != nil {
		t.Fatal("an API is registered whose server is away for two minutes")
	}
	eventually(t, "the namespace has ended", func() bool {
		return apierrors.IsNotFound(i.Client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns))
	})
	i.startPods()
	i.stop(handler)
	i.round()
	if i.registered() == nil {
		t.Error("virt-api is back, and its API isn't registered because of virt-handler")
	}
	i.installer.files = components(t, "")
	i.startPods()
}
