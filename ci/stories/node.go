package stories

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/machine/names"
)

// pod plays scheduler and kubelet for the launcher Pod of a VMI: what follows the name says what happened to it.
func (w *world) pod(d *datadriven.TestData) (string, error) {
	vmi := &v1.VirtualMachineInstance{}
	if err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: first(d)}, vmi); err != nil {
		return "", err
	}
	pod := &k8sv1.Pod{}
	if err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: names.LauncherPod(vmi.Name, vmi.UID)}, pod); err != nil {
		return "", err
	}
	what := d.CmdArgs[1].Key
	if what == "labelled" {
		return "", w.admin.Patch(w.t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"person":"here"}}}`)))
	}
	if what == "gone" {
		zero := int64(0)
		return "", w.admin.Delete(w.t.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &zero})
	}
	if pod.Spec.NodeName == "" && what != "unschedulable" {
		bind := &k8sv1.Binding{Target: k8sv1.ObjectReference{Kind: "Node", Name: "node-1"}}
		if err := w.admin.SubResource("binding").Create(w.t.Context(), pod, bind); err != nil {
			return "", err
		}
	}
	before := pod.DeepCopy()
	if err := become(w.now, &pod.Status, d); err != nil {
		return "", err
	}
	return "", w.admin.Status().Patch(w.t.Context(), pod, client.StrategicMergeFrom(before))
}

func become(now time.Time, st *k8sv1.PodStatus, d *datadriven.TestData) error {
	compute := k8sv1.ContainerStatus{Name: "compute"}
	switch what := d.CmdArgs[1].Key; what {
	case "unschedulable":
		condition(st, k8sv1.PodScheduled, k8sv1.ConditionFalse, k8sv1.PodReasonUnschedulable, "0/1 nodes are available")
		return nil
	case "pulling":
		compute.State.Waiting = &k8sv1.ContainerStateWaiting{Reason: arg(d, "reason"), Message: "no such image"}
	case "running":
		st.Phase = k8sv1.PodRunning
		compute.State.Running = &k8sv1.ContainerStateRunning{StartedAt: metav1.Now()}
	case "ready":
		condition(st, k8sv1.PodReady, k8sv1.ConditionTrue, "", "")
		return nil
	case "exited":
		code, err := strconv.ParseInt(arg(d, "code"), 10, 32)
		if err != nil {
			return err
		}
		st.Phase = k8sv1.PodFailed
		compute.State.Terminated = &k8sv1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Error", Message: "libvirtd ended"}
	case "evicted": // by the kubelet, which ends its launcher well
		st.Phase, st.Reason = k8sv1.PodFailed, "Evicted"
		compute.State.Terminated = &k8sv1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.NewTime(now)}
	default:
		return fmt.Errorf("nothing called %q can happen to a Pod", what)
	}
	st.ContainerStatuses = []k8sv1.ContainerStatus{compute}
	return nil
}

func condition(st *k8sv1.PodStatus, kind k8sv1.PodConditionType, status k8sv1.ConditionStatus, reason, message string) {
	for i := range st.Conditions {
		if st.Conditions[i].Type == kind {
			st.Conditions = append(st.Conditions[:i], st.Conditions[i+1:]...)
			break
		}
	}
	st.Conditions = append(st.Conditions, k8sv1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
}

// labels prints what VMI and Pod carry of other keys than ours.
func (w *world) labels(d *datadriven.TestData) (string, error) {
	vmi, pod := &v1.VirtualMachineInstance{}, &k8sv1.Pod{}
	if err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: first(d)}, vmi); err != nil {
		return "", err
	}
	if err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: names.LauncherPod(vmi.Name, vmi.UID)}, pod); err != nil {
		return "", err
	}
	return fmt.Sprintf("vmi %s %s\npod %s %s\n", others(vmi.Labels), others(vmi.Annotations), others(pod.Labels), others(pod.Annotations)), nil
}

func others(in map[string]string) string {
	var out []string
	for k, v := range in {
		if !strings.Contains(k, "kubevirt.io") && !strings.Contains(k, "kubernetes.io/default-container") && !strings.Contains(k, "descheduler") {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return "{" + strings.Join(out, " ") + "}"
}

// agent plays the node agent: it takes the phase.
func (w *world) agent(d *datadriven.TestData) (string, error) {
	vmi := &v1.VirtualMachineInstance{}
	if err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: first(d)}, vmi); err != nil {
		return "", err
	}
	phase := v1.VirtualMachineInstancePhase(d.CmdArgs[1].Key)
	st := &v1.VirtualMachineInstanceStatus{Phase: phase, PhaseTransitionTimestamps: vmi.Status.PhaseTransitionTimestamps}
	st.PhaseTransitionTimestamps = append(st.PhaseTransitionTimestamps, v1.VirtualMachineInstancePhaseTransitionTimestamp{
		Phase: phase, PhaseTransitionTimestamp: metav1.NewTime(w.now),
	})
	return "", apply.Applier{Client: w.admin, Manager: "virt-handler"}.Status(w.t.Context(), vmi, st, apply.Force())
}
