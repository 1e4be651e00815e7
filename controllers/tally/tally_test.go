package tally_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"virtstack.io/virtstack/controllers/tally"
	"virtstack.io/virtstack/machine/names"
)

// gathered returns the series as name{label=value,…} of all labels that aren't empty, with their values.
func gathered(t *testing.T, leads chan struct{}, objects ...client.Object) map[string]float64 {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&tally.Collector{Cache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Leading: leads})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			all[f.GetName()+"{"+labelled(m)+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

func labelled(m *dto.Metric) string {
	var labels []string
	for _, l := range m.Label {
		if l.GetValue() != "" {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
	}
	return strings.Join(labels, ",")
}

func want(t *testing.T, got map[string]float64, wanted map[string]float64) {
	t.Helper()
	for series, value := range wanted {
		if v, ok := got[series]; !ok || v != value {
			t.Errorf("%s: got %v (there: %t), want %v, in %v", series, v, ok, value, slices.Sorted(maps.Keys(got)))
		}
	}
}

func TestWhatIsThereIsCounted(t *testing.T) {
	made, stalled := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	strategy := v1.EvictionStrategyLiveMigrate
	leads := make(chan struct{})
	close(leads)
	got := gathered(t, leads,
		&v1.VirtualMachine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", CreationTimestamp: made},
			Spec:       v1.VirtualMachineSpec{Instancetype: &v1.InstancetypeMatcher{Name: "small"}},
			Status: v1.VirtualMachineStatus{PrintableStatus: v1.VirtualMachineStatusUnschedulable, Conditions: []v1.VirtualMachineCondition{
				{Type: "Stalled", Status: k8sv1.ConditionTrue, Reason: "Unschedulable", LastTransitionTime: stalled}}},
		},
		&v1.VirtualMachineInstance{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "db", UID: "u", Labels: map[string]string{v1.OutdatedLauncherImageLabel: ""}},
			Spec:       v1.VirtualMachineInstanceSpec{Architecture: "amd64", EvictionStrategy: &strategy},
			Status:     v1.VirtualMachineInstanceStatus{Phase: v1.Running, NodeName: "n1"},
		})
	want(t, got, map[string]float64{
		"kubevirt_virt_controller_leading_status{}": 1,
		"kubevirt_vm_info{instance_type=small,name=web,namespace=team,status=ErrorUnschedulable,status_group=error}":                                                     1,
		"kubevirt_vm_create_date_timestamp_seconds{name=web,namespace=team}":                                                                                             1000,
		"kubevirt_vm_error_status_last_transition_timestamp_seconds{name=web,namespace=team}":                                                                            2000,
		"kubevirt_vm_running_status_last_transition_timestamp_seconds{name=web,namespace=team}":                                                                          0,
		"virtstack_vm_stalled{name=web,namespace=team,reason=Unschedulable}":                                                                                             1,
		"kubevirt_vmi_non_evictable{name=db,namespace=team,node=n1}":                                                                                                     1,
		"kubevirt_vmi_info{evictable=false,guest_os_arch=amd64,name=db,namespace=team,node=n1,outdated=true,phase=Running,vmi_pod=" + names.LauncherPod("db", "u") + "}": 1,
	})
}

// Two virt-controllers run: what both said would count twice.
func TestOneThatDoesNotLeadCountsNothing(t *testing.T) {
	got := gathered(t, make(chan struct{}), &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}})
	want(t, got, map[string]float64{"kubevirt_virt_controller_leading_status{}": 0})
	if len(got) != 1 {
		t.Errorf("got %v", got)
	}
}
