package virtctl

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1 "kubevirt.io/api/core/v1"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/kubetest"
)

// ruin is an install of which nothing runs.
type ruin struct {
	*kubetest.Env
	t          *testing.T
	kubeconfig string
	kv         *v1.KubeVirt
	vm         *v1.VirtualMachine
	operator   *appsv1.Deployment
	objects    []crclient.Object // of the cluster
}

func newRuin(t *testing.T) *ruin {
	t.Helper()
	e := kubetest.Start(t)
	r := &ruin{Env: e, t: t, kubeconfig: kubeconfig(t, e, "default")}
	ours := map[string]string{"app.kubernetes.io/managed-by": "virt-operator"}
	pod := map[string]string{"kubevirt.io": "virt-operator"}
	r.kv = &v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt", Finalizers: []string{"foregroundDeleteKubeVirt"}}}
	halted := v1.RunStrategyHalted
	r.vm = &v1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace(t), Name: "last-one", Finalizers: []string{v1.VirtualMachineControllerFinalizer}},
		Spec:       v1.VirtualMachineSpec{RunStrategy: &halted, Template: &v1.VirtualMachineInstanceTemplateSpec{}},
	}
	r.operator = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-operator"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: pod},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "virt-api-validator", Labels: ours}}
	hook.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "away.kubevirt.io", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &fail,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "kubevirt", Name: "virt-api"}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"UPDATE"},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{"kubevirt.io"}, APIVersions: []string{"*"}, Resources: []string{"*"}}}},
	}}
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.subresources.kubevirt.io", "labels": map[string]any{"app.kubernetes.io/managed-by": "virt-operator"}},
		"spec": map[string]any{"group": "subresources.kubevirt.io", "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
			"service": map[string]any{"namespace": "kubevirt", "name": "virt-api"}},
	}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt-apiserver", Labels: ours}}
	r.objects = []crclient.Object{api, role, hook}
	for _, o := range append([]crclient.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"}}, r.kv, r.vm, r.operator,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "another"}},
	}, r.objects...) {
		if err := e.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// says runs virtctl uninstall, whose output must have all of these texts.
func (r *ruin) says(code int, texts ...string) {
	r.t.Helper()
	var out bytes.Buffer
	got := Run(r.t.Context(), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, []string{"virtctl", "uninstall", "--kubeconfig=" + r.kubeconfig})
	for _, text := range texts {
		if got != code || !strings.Contains(out.String(), text) {
			r.t.Errorf("exit code %d, want %d; no %q in %q", got, code, text, out.String())
		}
	}
}

func (r *ruin) delete(o crclient.Object) {
	r.t.Helper()
	if err := r.Client.Delete(r.t.Context(), o); err != nil {
		r.t.Fatal(err)
	}
}

func (r *ruin) gone(o crclient.Object) bool {
	r.t.Helper()
	err := r.Client.Get(r.t.Context(), crclient.ObjectKeyFromObject(o), o)
	if crclient.IgnoreNotFound(err) != nil {
		r.t.Fatal(err)
	}
	return err != nil
}

// Nothing runs any more, and everything is in everybody's way: one command clears it, after it has said what comes before.
func TestARuinIsClearedByOneCommand(t *testing.T) {
	r := newRuin(t)
	r.says(1, "KubeVirt kubevirt/kubevirt is not being deleted", "kubectl delete kubevirt -n kubevirt kubevirt --wait=false")
	r.delete(r.kv)
	r.says(1, "virtualmachines "+r.vm.Namespace+"/last-one is not being deleted", "kubectl delete virtualmachines --all --all-namespaces --wait=false")
	r.delete(r.vm)
	r.operator.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if err := r.Client.Status().Update(t.Context(), r.operator); err != nil {
		t.Fatal(err)
	}
	r.says(1, "The operator runs and removes what it installed")
	for _, o := range append([]crclient.Object{r.kv, r.vm}, r.objects...) {
		if r.gone(o) {
			t.Fatalf("%s is gone, though the command was refused", o.GetName())
		}
	}
	r.operator.Status = appsv1.DeploymentStatus{}
	if err := r.Client.Status().Update(t.Context(), r.operator); err != nil {
		t.Fatal(err)
	}
	r.says(0, "deleted: apiservices v1.subresources.kubevirt.io", "let go: virtualmachines "+r.vm.Namespace+"/last-one", "let go: kubevirts kubevirt/kubevirt",
		"kubectl delete namespace kubevirt")
	for _, o := range append([]crclient.Object{r.kv, r.vm}, r.objects...) {
		if !r.gone(o) {
			t.Errorf("%s is still there", o.GetName())
		}
	}
	if r.gone(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "another"}}) {
		t.Error("what isn't ours is gone")
	}
	r.says(0, "Nothing is in the way of a deletion.")
	r.ends()
}

// ends checks that namespaces come to their end.
func (r *ruin) ends() {
	r.t.Helper()
	r.Controllers(r.t, "namespace-controller")
	for _, name := range []string{"kubevirt", r.vm.Namespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.delete(ns)
		gone := func(ctx context.Context) (bool, error) {
			return apierrors.IsNotFound(r.Client.Get(ctx, crclient.ObjectKeyFromObject(ns), ns)), nil
		}
		if err := wait.PollUntilContextTimeout(r.t.Context(), 100*time.Millisecond, time.Minute, true, gone); err != nil {
			r.t.Errorf("namespace %s is still there: %+v", name, ns.Status)
		}
	}
}
