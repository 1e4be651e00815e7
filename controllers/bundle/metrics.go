package bundle

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// rolledBack has a series for each Bundle whose cluster doesn't have what its source has.
var rolledBack = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "virtstack_bundle_rolled_back",
	Help: "1 while a Bundle has gone back to its last healthy revision; absent: it has not.",
}, []string{"namespace", "name"})

func init() { metrics.Registry.MustRegister(rolledBack) }

// measure brings the Bundle's series up to date.
func measure(key types.NamespacedName, back bool) {
	if back {
		rolledBack.WithLabelValues(key.Namespace, key.Name).Set(1)
		return
	}
	rolledBack.DeleteLabelValues(key.Namespace, key.Name)
}
