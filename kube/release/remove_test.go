package release

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// owned returns an object of the test's owner.
func owned(version, kind, name string, labels ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetName(name)
	if kind != "Namespace" {
		u.SetNamespace("ns")
	}
	all := map[string]string{"example.com/name": "owner", "example.com/namespace": "ns"}
	for _, l := range labels {
		all[l] = "True"
	}
	u.SetLabels(all)
	return u
}

// What would take a machine or its disks along stays where a machine of the same removal is protected, or could not be
// looked at, in whatever order they come.
func TestDisksStayWithTheirMachine(t *testing.T) {
	const protect = "kubevirt.io/vm-delete-protection"
	machine := func(labels ...string) *unstructured.Unstructured {
		return owned("kubevirt.io/v1", "VirtualMachine", "web", labels...)
	}
	for name, tc := range map[string]struct {
		machine *unstructured.Unstructured
		unread  string
		stay    bool
	}{
		"protected":                    {machine(protect), "", true},
		"not read":                     {machine(), "web", true},
		"free":                         {machine(), "", false},
		"free, and another isn't read": {machine(), "other", false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []*unstructured.Unstructured{
				owned("v1", "PersistentVolumeClaim", "disk"), owned("v1", "Namespace", "shop"), owned("v1", "ConfigMap", "other"), tc.machine,
			}
			b := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if key.Name == tc.unread {
						return errors.New("the server is away")
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			var refs []Ref
			for _, o := range objects {
				b, refs = b.WithObjects(o), append(refs, RefOf(o))
			}
			c := b.Build()
			_, err := New(c, "test", Owner{Group: "example.com", Namespace: "ns", Name: "owner"}).Remove(t.Context(), refs)
			if (err != nil) != (tc.unread != "") {
				t.Errorf("got %v", err)
			}
			for _, o := range objects[:2] {
				there := c.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopy()) == nil
				if there != tc.stay {
					t.Errorf("%s is there: %t, want %t", o.GetKind(), there, tc.stay)
				}
			}
		})
	}
}
