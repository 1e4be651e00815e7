package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/kube/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

const (
	aMachine = `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {labels: {a: b}, annotations: {c: d}}, spec: {runStrategy: Halted, template: {metadata: {labels: {tier: web}}, spec: {
domain: {cpu: {cores: 1}, memory: {guest: 1Gi}, devices: {disks: [{name: root, disk: {bus: virtio}}, {name: seed, disk: {}}], interfaces: [{name: default, masquerade: {}}]}},
tolerations: [{key: x, operator: Exists}], networks: [{name: default, pod: {}}],
volumes: [{name: root, containerDisk: {image: "r.example/x:1"}}, {name: seed, cloudInitNoCloud: {userData: "#cloud-config"}}]}}}}`
	aMap        = `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: b}}, data: {value: one, other: two}}`
	aService    = `{apiVersion: v1, kind: Service, spec: {selector: {a: b}, ports: [{port: 80, protocol: TCP, name: w}, {port: 81, protocol: TCP, name: x}]}}`
	aDeployment = `{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
spec: {containers: [{name: x, image: img, args: [a, b], resources: {requests: {cpu: 1000m}}, env: [{name: A, value: b}, {name: B, value: c}]}]}}}}`
)

// released is a release of several objects of one kind, and a count of the dry runs that it asks for.
type released struct {
	*Releaser
	admin   client.Client
	objects []*unstructured.Unstructured
	dryRuns *atomic.Int64
}

func releasing(t *testing.T, manifest string, count int) *released {
	t.Helper()
	e := kubetest.Start(t)
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Client.Scheme(), Mapper: e.Client.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	x := &released{admin: e.Client, dryRuns: &atomic.Int64{}}
	counting := interceptor.NewClient(c, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			x.dryRuns.Add(1) // writes are Apply
			return w.Patch(ctx, o, p, opts...)
		},
	})
	ns := e.Namespace(t)
	x.Releaser = New(counting, "test", Owner{Group: "example.com", Namespace: ns, Name: "owner"})
	for i := range count {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.Object = whole(u.Object).(map[string]any)
		u.SetNamespace(ns)
		u.SetName(fmt.Sprintf("x-%d", i))
		labels := x.owner.Labels()
		for k, v := range u.GetLabels() {
			labels[k] = v
		}
		u.SetLabels(labels)
		x.objects = append(x.objects, u)
	}
	x.apply(t)
	return x
}

// check returns what has to be written, and how many dry runs that took.
func (x *released) check(t *testing.T) (Changes, int) {
	t.Helper()
	x.dryRuns.Store(0)
	c, err := x.Check(t.Context(), x.objects)
	if err != nil {
		t.Fatal(err)
	}
	return c, int(x.dryRuns.Load())
}

func (x *released) apply(t *testing.T) {
	t.Helper()
	c, _ := x.check(t)
	if err := x.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// What is as it should be is not asked about again; the API server writes some values its own way, which takes a dry run.
func TestWhatIsAsItShouldBeTakesNoDryRun(t *testing.T) {
	const count = several
	for name, tc := range map[string]struct {
		manifest string
		want     int
	}{
		"a machine": {aMachine, 0}, "a map": {aMap, 0}, "a service": {aService, 0},
		"a quantity that is written anew": {aDeployment, count},
	} {
		t.Run(name, func(t *testing.T) {
			x := releasing(t, tc.manifest, count)
			if c, n := x.check(t); !c.Empty() || n != tc.want {
				t.Errorf("got %v and %d dry runs, want nothing and %d", c.Refs(), n, tc.want)
			}
		})
	}
}

// Whatever differs is found, be it few objects or several, and nothing else is.
func TestWhatDiffersIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		manifest string
		live     string // a merge patch of somebody else
		want     string // what is wanted now, a patch of the manifest: path=value as YAML
	}{
		"a value":                      {manifest: aMachine, live: `{"spec":{"runStrategy":"Always"}}`},
		"a label":                      {manifest: aMachine, live: `{"metadata":{"labels":{"a":"x"}}}`},
		"a label that is gone":         {manifest: aMap, live: `{"metadata":{"labels":{"a":null}}}`},
		"an annotation that is gone":   {manifest: aMachine, live: `{"metadata":{"annotations":null}}`},
		"the owner's label is gone":    {manifest: aMap, live: `{"metadata":{"labels":{"example.com/name":null}}}`},
		"a key that is gone":           {manifest: aMap, live: `{"data":{"other":null}}`},
		"an entry of a list":           {manifest: aMachine, live: `{"spec":{"template":{"spec":{"networks":[{"name":"other","pod":{}}]}}}}`},
		"a list that is one value":     {manifest: aMachine, live: `{"spec":{"template":{"spec":{"tolerations":[{"key":"y","operator":"Exists"}]}}}}`},
		"a port":                       {manifest: aService, live: `{"spec":{"ports":[{"port":80,"name":"w"},{"port":81,"name":"y"}]}}`},
		"a value that is wanted":       {manifest: aMachine, want: "spec.runStrategy=Manual"},
		"a field that is wanted":       {manifest: aMachine, want: "spec.template.spec.hostname=web"},
		"a key that is wanted no more": {manifest: aMap, want: "data={value: one}"},
		"an entry that is wanted":      {manifest: aMachine, want: "spec.template.spec.accessCredentials=[]"},
		"an entry less":                {manifest: aService, want: "spec.ports=[{port: 80, protocol: TCP, name: w}]"},
		"another order":                {manifest: aService, want: "spec.ports=[{port: 81, protocol: TCP, name: x}, {port: 80, protocol: TCP, name: w}]"},
	} {
		for _, count := range []int{1, several} {
			t.Run(fmt.Sprintf("%s, of %d", name, count), func(t *testing.T) {
				x := releasing(t, tc.manifest, count)
				if tc.live != "" {
					p := client.RawPatch("application/merge-patch+json", []byte(tc.live))
					if err := x.admin.Patch(t.Context(), x.objects[0].DeepCopy(), p); err != nil {
						t.Fatal(err)
					}
				}
				if path, value, ok := strings.Cut(tc.want, "="); ok {
					set(t, x.objects[0], path, value)
				}
				got, _ := x.check(t)
				if want := x.differs(t); len(got.write) != want || len(got.later) > 0 {
					t.Errorf("got %v, want %d: what an apply changes", got.Refs(), want)
				}
				x.apply(t)
				if c, _ := x.check(t); !c.Empty() {
					t.Errorf("after an apply: %v", c.Refs())
				}
			})
		}
	}
}

func set(t *testing.T, u *unstructured.Unstructured, path, value string) {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(value), &v); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(u.Object, whole(v), strings.Split(path, ".")...); err != nil {
		t.Fatal(err)
	}
}

// whole makes numbers of YAML those of the API.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		return int64(v)
	}
	return v
}

// differs is how many objects a real apply changes, as their resource versions tell in a dry run; which fields a manager
// owns is no change of the object.
func (x *released) differs(t *testing.T) int {
	t.Helper()
	n := 0
	for _, o := range x.objects {
		live := RefOf(o).Empty()
		if err := x.admin.Get(t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
			t.Fatal(err)
		}
		next := o.DeepCopy()
		//lint:ignore SA1019 the answer of the dry run is asked for
		err := x.admin.Patch(t.Context(), next, client.Apply, client.DryRunAll, client.ForceOwnership, client.FieldOwner("test"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(plain(t, live), plain(t, next)) {
			n++
		}
	}
	return n
}

func plain(t *testing.T, u *unstructured.Unstructured) []byte {
	t.Helper()
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	u.SetGeneration(0)
	u.SetResourceVersion("")
	u.SetCreationTimestamp(metav1.Time{})
	raw, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
