package operator

import (
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/operator/render"
	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// install is one cluster with the operator's own rights. Its components are stand-ins: what their Pods would do, the
// test writes into their status.
type install struct {
	*kubetest.Env
	t         *testing.T
	installer *Controller
	certifier *Certifier
	signer    *Signer
	key       client.ObjectKey
	now       time.Time
}

const workload = `
apiVersion: apps/v1
kind: KIND
metadata: {name: NAME}
spec:
  selector: {matchLabels: {kubevirt.io: NAME}}
  template:
    metadata: {labels: {kubevirt.io: NAME}}
    spec: {serviceAccountName: ACCOUNT, containers: [{name: c, image: virtstack}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ACCOUNT}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ACCOUNT}
rules: [{apiGroups: [""], resources: [pods], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ACCOUNT}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ACCOUNT}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: kubevirt}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ACCOUNT}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
`

const webhooks = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: virt-api-validator}
webhooks:
- name: never.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: virt-api, namespace: kubevirt, path: /x}}
  rules: [{apiGroups: [example.test], apiVersions: [v1], operations: [CREATE], resources: [nothing]}]
`

// components is the real bundle with stand-ins for virt-api, virt-controller and virt-handler.
func components(t *testing.T, extra string) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	real := os.DirFS("../../bundles/components")
	for _, pattern := range []string{"*.yaml", "roles/*.yaml"} {
		files, err := fs.Glob(real, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := fs.ReadFile(real, f)
			if err != nil {
				t.Fatal(err)
			}
			all[f] = &fstest.MapFile{Data: data}
		}
	}
	for _, c := range [][3]string{
		{"DaemonSet", "virt-handler", "kubevirt-handler"}, {"Deployment", "virt-controller", "kubevirt-controller"}, {"Deployment", "virt-api", "kubevirt-apiserver"},
	} {
		manifest := strings.NewReplacer("KIND", c[0], "NAME", c[1], "ACCOUNT", c[2]).Replace(workload)
		if c[1] == "virt-api" {
			manifest += "---" + webhooks + extra
		}
		all[c[1]+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [all.yaml]\n")}
		all[c[1]+"/all.yaml"] = &fstest.MapFile{Data: []byte(manifest)}
	}
	return all
}

func begin(t *testing.T) *install {
	t.Helper()
	e := kubetest.Start(t)
	i := &install{Env: e, t: t, key: client.ObjectKey{Namespace: "kubevirt", Name: "kubevirt"}, now: time.Now()}
	objects, err := build.Objects(t.Context(), os.DirFS("../../bundles/operator"), "", build.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.Unstructured), client.ForceOwnership, client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
	}
	i.process(nil)
	return i
}

// process starts the operator, whose requests go through wire; nil: as they are.
func (i *install) process(wire func(http.RoundTripper) http.RoundTripper) {
	i.t.Helper()
	own := i.operator(wire)
	i.installer = &Controller{
		client: own, live: own, status: apply.Applier{Client: own, Manager: fieldManager}, events: events.NewFakeRecorder(1000),
		files: components(i.t, ""), images: render.Images{Component: "localhost/virtstack:1", Launcher: "localhost/virt-launcher:1"},
	}
	i.certifier, i.signer = &Certifier{client: own, live: own}, &Signer{client: own, live: own}
}

// operator acts with a token of the operator's own account.
func (i *install) operator(wire func(http.RoundTripper) http.RoundTripper) client.Client {
	i.t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt-operator"}}
	token := &authenticationv1.TokenRequest{}
	if err := i.Client.SubResource("token").Create(i.t.Context(), sa, token); err != nil {
		i.t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(i.Config)
	cfg.BearerToken = token.Status.Token
	cfg.QPS, cfg.Burst = -1, -1
	if wire != nil {
		cfg.Wrap(wire)
	}
	c, err := client.New(cfg, client.Options{Scheme: i.Client.Scheme()})
	if err != nil {
		i.t.Fatal(err)
	}
	return c
}

// round lets both loops do one step, a second later.
func (i *install) round() *v1.KubeVirt {
	i.t.Helper()
	i.now = i.now.Add(time.Second)
	if _, err := i.certifier.Round(i.t.Context(), i.key, i.now); err != nil {
		i.t.Fatal(err)
	}
	if _, err := i.installer.Round(i.t.Context(), i.key, i.now); err != nil {
		i.t.Fatal(err)
	}
	kv := &v1.KubeVirt{}
	if err := client.IgnoreNotFound(i.Client.Get(i.t.Context(), i.key, kv)); err != nil {
		i.t.Fatal(err)
	}
	return kv
}

// until does rounds, in each of which every component that exists gets ready, until done.
func (i *install) until(what string, done func(*v1.KubeVirt) bool) *v1.KubeVirt {
	i.t.Helper()
	for range 40 {
		kv := i.round()
		if done(kv) {
			return kv
		}
		i.startPods()
	}
	i.t.Fatalf("40 rounds have not led to: %s; %v", what, i.round().Status.Conditions)
	return nil
}

func is(kind, status string) func(*v1.KubeVirt) bool {
	return func(kv *v1.KubeVirt) bool {
		for _, c := range kv.Status.Conditions {
			if string(c.Type) == kind {
				return string(c.Status) == status
			}
		}
		return status == ""
	}
}

func (i *install) startPods() {
	i.t.Helper()
	for _, name := range []string{"virt-controller", "virt-api"} {
		d := &appsv1.Deployment{}
		if i.get(d, name) {
			d.Status = appsv1.DeploymentStatus{
				ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas,
				ReadyReplicas: *d.Spec.Replicas, AvailableReplicas: *d.Spec.Replicas,
				Conditions: []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
				},
			}
			i.update(d)
		}
	}
	d := &appsv1.DaemonSet{}
	if i.get(d, "virt-handler") {
		d.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: d.Generation, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1,
		}
		i.update(d)
	}
}

func (i *install) update(o client.Object) {
	i.t.Helper()
	if err := i.Client.Status().Update(i.t.Context(), o); err != nil {
		i.t.Fatal(err)
	}
}

func (i *install) get(o client.Object, name string) bool {
	i.t.Helper()
	err := i.Client.Get(i.t.Context(), client.ObjectKey{Namespace: "kubevirt", Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		i.t.Fatal(err)
	}
	return err == nil
}

func (i *install) create(o client.Object) {
	i.t.Helper()
	if err := i.Client.Create(i.t.Context(), o); err != nil {
		i.t.Fatal(err)
	}
}

// hook returns the webhook configuration of virt-api, nil if there is none.
func (i *install) hook() *admissionregistrationv1.ValidatingWebhookConfiguration {
	i.t.Helper()
	h := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := i.Client.Get(i.t.Context(), client.ObjectKey{Name: "virt-api-validator"}, h)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		i.t.Fatal(err)
	}
	return h
}

func machine(namespace string) *v1.VirtualMachine {
	never := v1.RunStrategyHalted
	return &v1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       v1.VirtualMachineSpec{RunStrategy: &never, Template: &v1.VirtualMachineInstanceTemplateSpec{}},
	}
}
