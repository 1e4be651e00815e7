package operator

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stypes "k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Only what was seen is deleted: a VM that was made anew under its name meanwhile stays, and so does one that is going.
func TestWorkloadsAreDeletedAsTheyWereSeen(t *testing.T) {
	types := runtime.NewScheme()
	if err := v1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	machine := func(name string) *v1.VirtualMachine {
		return &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: name, UID: k8stypes.UID("uid-of-" + name)}}
	}
	going := machine("going")
	going.Finalizers, going.DeletionTimestamp = []string{"test/slow"}, &metav1.Time{Time: metav1.Now().Time}
	var deleted []string
	c := fake.NewClientBuilder().WithScheme(types).WithObjects(machine("seen"), machine("anew"), going).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			p := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
			if p == nil || p.UID == nil || *p.UID != o.GetUID() {
				t.Errorf("%s is deleted whoever it is", o.GetName())
			}
			if o.GetName() == "anew" {
				return apierrors.NewConflict(v1.Resource("virtualmachines"), o.GetName(), errors.New("the UID is another"))
			}
			deleted = append(deleted, o.GetName())
			return nil
		},
	}).Build()
	if err := (&Controller{client: c, live: c}).removeWorkloads(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.Equal(deleted, []string{"seen"}) {
		t.Errorf("deleted %q", deleted)
	}
}
