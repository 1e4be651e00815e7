package vmi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"virtstack.io/virtstack/machine/names"
)

var errModified = apierrors.NewConflict(v1.Resource("virtualmachineinstances"), "web", errors.New("modified"))

// lost is a VMI that was handed over.
func lost() *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "web", UID: "vmi-1", Finalizers: []string{v1.VirtualMachineInstanceFinalizer}}}
	vmi.Status.Phase, vmi.Status.NodeName = v1.Running, "node-1"
	return vmi
}

// told returns the events since it was called last.
func told(r *events.FakeRecorder) []string {
	var all []string
	for {
		select {
		case e := <-r.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func loops(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (*Controller, *events.FakeRecorder) {
	t.Helper()
	types := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(types), v1.AddToScheme(types)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(types).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	recorder := events.NewFakeRecorder(10)
	return &Controller{Client: c, Live: c, Events: recorder}, recorder
}

// A round that is repeated, because the status could not be written, tells of a lost Pod once.
func TestALossIsToldOnceItIsWritten(t *testing.T) {
	answers := []error{errModified, errModified, nil}
	c, recorder := loops(t, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			next := answers[0]
			answers = answers[1:]
			return next
		},
	}, lost())
	for range 2 {
		_, err := c.Round(t.Context(), client.ObjectKeyFromObject(lost()), time.Now())
		if got := told(recorder); !apierrors.IsConflict(err) || len(got) != 0 {
			t.Errorf("a round that wrote nothing: %v, and told %q", err, got)
		}
	}
	_, err := c.Round(t.Context(), client.ObjectKeyFromObject(lost()), time.Now())
	if got := told(recorder); err != nil || len(got) != 1 || !strings.Contains(got[0], "LauncherPodLost") {
		t.Errorf("the round that wrote it: %v, and told %q", err, got)
	}
}

// A Pod whose deletion the cache doesn't show yet isn't deleted again, and nobody is told twice.
func TestADeletionIsToldOnce(t *testing.T) {
	vmi := lost()
	vmi.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	yes := true
	pod := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "vms", Name: names.LauncherPod("web", "vmi-1"), UID: "pod-1", ResourceVersion: "7", Finalizers: []string{"test/slow"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Name: "web", UID: "vmi-1", Controller: &yes}},
	}}
	version := "7"
	c, recorder := loops(t, interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			o := (&client.DeleteOptions{}).ApplyOptions(opts)
			if o.Preconditions == nil || *o.Preconditions.UID != "pod-1" || *o.Preconditions.ResourceVersion != version {
				return errModified
			}
			version = "8" // it is being deleted
			return nil
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errModified
		},
	}, vmi, pod)
	for range 3 {
		if _, err := c.Round(t.Context(), client.ObjectKeyFromObject(vmi), time.Now()); !apierrors.IsConflict(err) {
			t.Errorf("got %v, want a conflict", err)
		}
	}
	if got := told(recorder); len(got) != 1 || !strings.Contains(got[0], "SuccessfulDelete") {
		t.Errorf("told %q, want one deletion", got)
	}
}
