package bundle

import (
	"context"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// revoke leaves the tenant's account only ConfigMaps.
func (x *tenant) revoke() {
	x.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "deployer-configmaps"}}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}}
	if err := x.Client.Update(x.t.Context(), role); err != nil {
		x.t.Fatal(err)
	}
	as, err := x.controller.as(x.namespace, "deployer")
	if err != nil {
		x.t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(x.t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(as.Get(ctx, client.ObjectKey{Namespace: x.namespace, Name: "s"}, &corev1.Service{})), nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

func TestLostRightsRemoveNothingThatIsWanted(t *testing.T) {
	x := start(t)
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.repo.Commit("s.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n")
	x.bundle.Spec.Wait = new(bool)
	x.create(x.bundle)
	x.settle()
	x.drop("s.yaml")
	x.revoke()
	x.failed(x.settle(), "PruneFailed", "Service "+x.namespace+"/s", "forbidden")
	if !x.exists(&corev1.ConfigMap{}, "a") {
		t.Error("an object of the commit was removed")
	}
}

func TestAServerThatNeverAnswersIsSaid(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	x := start(t)
	x.bundle.Spec.Source.Git.URL = "http://" + silent.Addr().String() + "/apps.git"
	x.bundle.Spec.Timeout = &metav1.Duration{Duration: time.Second}
	x.create(x.bundle)
	x.round() // takes hold of the Bundle
	x.failed(x.round(), "FetchFailed", "deadline exceeded")
}
