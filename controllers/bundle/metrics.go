package bundle

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
)

// Health exports what the status of Bundles says. It is asked at each scrape.
type Health struct {
	// Cache is read, never the API server.
	Cache client.Reader
	// Leading is closed when this process begins to lead: of two virt-bundles one answers.
	Leading <-chan struct{}
}

var (
	conditionIs = prometheus.NewDesc("virtstack_bundle_condition", "1 for each condition of a Bundle, with its status and reason.",
		[]string{"namespace", "name", "type", "status", "reason"}, nil)
	isSuspended = prometheus.NewDesc("virtstack_bundle_suspended", "1 for a Bundle that is suspended, else 0.", []string{"namespace", "name"}, nil)
	rolledBack  = prometheus.NewDesc("virtstack_bundle_rolled_back",
		"1 while a Bundle has gone back to its last healthy revision; absent: it has not.", []string{"namespace", "name"}, nil)
)

// Describe sends all of them.
func (*Health) Describe(to chan<- *prometheus.Desc) {
	to <- conditionIs
	to <- isSuspended
	to <- rolledBack
}

// Collect sends what there is now. A cache that can't be read is a scrape that fails.
func (h *Health) Collect(to chan<- prometheus.Metric) {
	select {
	case <-h.Leading:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all v1alpha1.BundleList
	if err := h.Cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(conditionIs, err)
		return
	}
	for i := range all.Items {
		series(to, &all.Items[i])
	}
}

// series sends what one Bundle's status says.
func series(to chan<- prometheus.Metric, b *v1alpha1.Bundle) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{b.Namespace, b.Name}, labels...)...)
	}
	for _, c := range b.Status.Conditions {
		send(conditionIs, 1, c.Type, string(c.Status), c.Reason)
	}
	suspended := 0.0
	if b.Spec.Suspend {
		suspended = 1
	}
	send(isSuspended, suspended)
	if b.Status.RolledBack != nil {
		send(rolledBack, 1)
	}
}
