// Package tally exports what VMs and VMIs are, from virt-controller's cache, under the names that dashboards made for
// KubeVirt ask for.
package tally

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Collector is asked at each scrape. Of two virt-controllers the one that leads answers, so that nothing is counted twice.
type Collector struct {
	// Cache is read, never the API server.
	Cache client.Reader
	// Leading is closed when this process begins to lead.
	Leading <-chan struct{}
}

// series is a metric that has a series for each VM or VMI.
type series struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) series {
	return series{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

func (s series) send(to chan<- prometheus.Metric, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(s.desc, s.kind, value, labels...)
}

var (
	leading = gauge("kubevirt_virt_controller_leading_status", "1 of the virt-controller that acts, 0 of one that waits to.")
	vmInfo  = gauge("kubevirt_vm_info", "1 for each VM, with what it is.",
		"name", "namespace", "os", "workload", "flavor", "machine_type", "instance_type", "preference", "status", "status_group")
	vmCreated = gauge("kubevirt_vm_create_date_timestamp_seconds", "When a VM was created, in seconds since 1970.", "name", "namespace")
	vmStalled = gauge("virtstack_vm_stalled", "1 for each VM that won't get on by itself, with the reason of its condition Stalled.",
		"name", "namespace", "reason")
	vmiInfo = gauge("kubevirt_vmi_info", "1 for each VMI, with what it is.",
		"node", "namespace", "name", "phase", "os", "workload", "flavor", "instance_type", "preference",
		"guest_os_kernel_release", "guest_os_machine", "guest_os_arch", "guest_os_name", "guest_os_version_id", "evictable", "outdated", "vmi_pod")
	vmiNonEvictable = gauge("kubevirt_vmi_non_evictable", "1 for a running VMI that is to be migrated from a node that is drained, and can't be.",
		"node", "namespace", "name")
	// since has a metric for each group of a VM's status: since when it has been in it, 0 for the others.
	since = map[string]series{}
)

func init() {
	for _, group := range groups {
		s := gauge("kubevirt_vm_"+group+"_status_last_transition_timestamp_seconds",
			"Since when a VM has had a status of this group, in seconds since 1970; 0: it has another.", "name", "namespace")
		s.kind = prometheus.CounterValue // as KubeVirt has it
		since[group] = s
	}
}

// Describe sends all of them.
func (*Collector) Describe(to chan<- *prometheus.Desc) {
	for _, s := range []series{leading, vmInfo, vmCreated, vmStalled, vmiInfo, vmiNonEvictable} {
		to <- s.desc
	}
	for _, s := range since {
		to <- s.desc
	}
}

// patience is how long a cache may take.
const patience = 10 * time.Second

// Collect sends what there is now. A cache that can't be read is a scrape that fails.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.Leading:
		leading.send(to, 1)
	default:
		leading.send(to, 0)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var vms v1.VirtualMachineList
	if err := c.Cache.List(ctx, &vms, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(vmInfo.desc, err)
		return
	}
	var vmis v1.VirtualMachineInstanceList
	if err := c.Cache.List(ctx, &vmis, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(vmiInfo.desc, err)
		return
	}
	for i := range vms.Items {
		machine(to, &vms.Items[i])
	}
	for i := range vmis.Items {
		instance(to, &vmis.Items[i])
	}
}
