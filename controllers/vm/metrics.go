package vm

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"virtstack.io/virtstack/machine/override"
)

// overridesUntil has a series for each VM whose run strategy is overridden.
var overridesUntil = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "virtstack_vm_run_override_until_seconds",
	Help: "When the override of a VM's run strategy ends, in seconds since 1970; absent: there is none.",
}, []string{"namespace", "name"})

func init() { metrics.Registry.MustRegister(overridesUntil) }

// measure brings the VM's series up to date; vm is nil where there is none, or it could not be read.
func measure(now time.Time, key types.NamespacedName, vm *v1.VirtualMachine) {
	if vm != nil {
		if o := override.Active(now, vm); o != nil {
			overridesUntil.WithLabelValues(key.Namespace, key.Name).Set(float64(o.Until.Unix()))
			return
		}
	}
	overridesUntil.DeleteLabelValues(key.Namespace, key.Name)
}
