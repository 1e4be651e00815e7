package kubetest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNamespacesEndWithTheirController(t *testing.T) {
	e := Start(t)
	e.Controllers(t, "namespace-controller")
	name := e.Namespace(t)
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "content"}}
	if err := e.Client.Create(t.Context(), content); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.Client.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	gone := func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(e.Client.Get(ctx, client.ObjectKeyFromObject(ns), ns)), nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, gone); err != nil {
		t.Errorf("the namespace is still there: %v, %+v", err, ns.Status)
	}
}
