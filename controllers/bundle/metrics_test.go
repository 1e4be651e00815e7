package bundle

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"virtstack.io/virtstack/api/v1alpha1"
)

// scrape returns what a process exports of the Bundles of a namespace, as metric{label=value,…}, the namespace left out.
func scrape(t *testing.T, h *Health, namespace string) (map[string]float64, error) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(h)
	families, err := r.Gather()
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			if labels, of := labelled(m); of == namespace {
				all[f.GetName()+"{"+labels+"}"] = m.GetGauge().GetValue()
			}
		}
	}
	return all, err
}

// labelled returns the labels of a series as label=value,… and, apart from them, its namespace.
func labelled(m *dto.Metric) (labels, namespace string) {
	var all []string
	for _, l := range m.Label {
		if l.GetName() == "namespace" {
			namespace = l.GetValue()
			continue
		}
		all = append(all, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(all, ","), namespace
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// exported is what the leading process says of the tenant's Bundles.
func (x *tenant) exported() map[string]float64 {
	x.t.Helper()
	all, err := scrape(x.t, &Health{Cache: x.Client, Leading: closed()}, x.namespace)
	if err != nil {
		x.t.Fatal(err)
	}
	return all
}

// bundles is a cache with three: one that is as Git says, one that is suspended, one that went back.
func bundles(t *testing.T) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	named := func(name, status, reason string) *v1alpha1.Bundle {
		b := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		b.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionStatus(status), Reason: reason}}
		return b
	}
	suspended, back := named("waits", "True", "ReconciliationSucceeded"), named("back", "False", "RolledBack")
	suspended.Spec.Suspend = true
	back.Status.RolledBack = &v1alpha1.RolledBack{From: "main@sha1:b", To: "main@sha1:a", Reason: "HealthCheckFailed"}
	back.Status.Conditions = append(back.Status.Conditions, metav1.Condition{Type: "Stalled", Status: "True", Reason: "RolledBack"})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(named("good", "True", "ReconciliationSucceeded"), suspended, back).Build()
}

func TestHealthOfBundlesIsExported(t *testing.T) {
	got, err := scrape(t, &Health{Cache: bundles(t), Leading: closed()}, "team")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"virtstack_bundle_condition{name=good,reason=ReconciliationSucceeded,status=True,type=Ready}":  1,
		"virtstack_bundle_condition{name=waits,reason=ReconciliationSucceeded,status=True,type=Ready}": 1,
		"virtstack_bundle_condition{name=back,reason=RolledBack,status=False,type=Ready}":              1,
		"virtstack_bundle_condition{name=back,reason=RolledBack,status=True,type=Stalled}":             1,
		"virtstack_bundle_suspended{name=good}":                                                        0,
		"virtstack_bundle_suspended{name=waits}":                                                       1,
		"virtstack_bundle_suspended{name=back}":                                                        0,
		"virtstack_bundle_rolled_back{name=back}":                                                      1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// Two virt-bundles run: an alert that both feed would show each Bundle twice.
func TestOneThatDoesNotLeadExportsNoBundle(t *testing.T) {
	if got, err := scrape(t, &Health{Cache: bundles(t), Leading: make(chan struct{})}, "team"); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// broken is a cache that can't be read.
type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the cache is not there")
}

// Series that are missing without an error would look like Bundles that are gone.
func TestCacheThatCanNotBeReadFailsTheScrape(t *testing.T) {
	if _, err := scrape(t, &Health{Cache: broken{}, Leading: closed()}, "team"); err == nil || !strings.Contains(err.Error(), "the cache is not there") {
		t.Errorf("got %v", err)
	}
}
