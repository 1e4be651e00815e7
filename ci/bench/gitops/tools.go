package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/ci/lab"
	"virtstack.io/virtstack/kube/kubetest"
)

// account is whose rights each tool takes on: a namespace's, which may do all.
const account = "deployer"

// bench is what both tools share.
type bench struct {
	lab         *lab.Lab
	env         *kubetest.Env
	dir         string
	git, server string // where the repositories are, and their address
	calls       *audit
}

// tool keeps a namespace as a repository says.
type tool interface {
	name() string
	// agents are the user agents and pids the processes that do it.
	agents() []string
	pids() []int
	create(ctx context.Context, namespace, url string) error
	// pushed tells of a commit; again asks for another look at all.
	pushed(ctx context.Context, namespace string) error
	again(ctx context.Context, namespace string) error
	// done tells whether all that was asked for is done and applied is a revision with that commit; and where it is.
	done(ctx context.Context, namespace, commit string) (bool, string, error)
	end(ctx context.Context, namespace string) error
}

// tools starts them; end stops them.
func (b *bench) tools(ctx context.Context) (all []tool, end func(), err error) {
	kubeconfig := filepath.Join(b.dir, "kubeconfig")
	end = func() {}
	flux, err := b.lab.StartFlux(ctx, "bench", kubeconfig)
	if err != nil {
		return nil, end, err
	}
	end = func() { _ = flux.Stop() } // they end with us
	program := filepath.Join(b.dir, "virt-operator")
	if _, err := b.lab.Run(ctx, "go", "build", "-ldflags", "-s -w", "-o", program, "./cmd/virt-operator"); err != nil {
		return nil, end, err
	}
	cmd := exec.Command(program, "bundles", "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	log, err := os.Create(filepath.Join(b.dir, "bundles.log"))
	if err != nil {
		return nil, end, err
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	if err := cmd.Start(); err != nil {
		return nil, end, err
	}
	end = func() { _, _, _ = flux.Stop(), cmd.Process.Kill(), cmd.Wait() }
	return []tool{&bundleTool{b, cmd.Process.Pid}, &fluxTool{b, flux}}, end, nil
}

func (b *bench) namespace(ctx context.Context, name string) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: name, Name: account}},
	}
	return errors.Join(
		b.env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}),
		b.env.Client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: account}}),
		b.env.Client.Create(ctx, binding))
}

// create makes the objects of a manifest.
func (b *bench) create(ctx context.Context, manifest string) error {
	for doc := range strings.SplitSeq(manifest, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return err
		}
		if err := b.env.Client.Create(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// ask sets the annotation that asks for another look, and returns its value.
func (b *bench) ask(ctx context.Context, o *unstructured.Unstructured, annotation string) error {
	now := time.Now().Format(time.RFC3339Nano)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotation, now)
	return b.env.Client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// settled tells whether Ready is True of the last generation and the applied revision has the commit.
func (b *bench) settled(ctx context.Context, o *unstructured.Unstructured, commit string) (bool, string, error) {
	if err := b.env.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return false, "", err
	}
	applied, _, _ := unstructured.NestedString(o.Object, "status", "lastAppliedRevision")
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		c := c.(map[string]any)
		if c["type"] == "Ready" {
			at := fmt.Sprintf("%s, Ready is %v: %v", applied, c["status"], c["message"])
			return c["status"] == "True" && strings.HasSuffix(applied, commit), at, nil
		}
	}
	return false, applied, nil
}

// machines removes the VMs of a namespace, so that the next finds as little in the API server as this one did.
func (b *bench) machines(ctx context.Context, namespace string) error {
	return b.env.Client.DeleteAllOf(ctx, &v1.VirtualMachine{}, client.InNamespace(namespace))
}

func object(apiVersion, kind, namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName("vms")
	return u
}

type bundleTool struct {
	*bench
	pid int
}

func (*bundleTool) name() string     { return "bundle" }
func (*bundleTool) agents() []string { return []string{"virt-bundles"} }
func (t *bundleTool) pids() []int    { return []int{t.pid} }

func (t *bundleTool) create(ctx context.Context, namespace, url string) error {
	return t.bench.create(ctx, fmt.Sprintf(`apiVersion: virtstack.io/v1alpha1
kind: Bundle
metadata: {name: vms, namespace: %s}
spec:
  source: {git: {url: %q, ref: {branch: main}}}
  path: vms
  interval: 1h
  wait: false
  prune: {enabled: true}
  serviceAccountName: %s
`, namespace, url, account))
}

func (*bundleTool) object(namespace string) *unstructured.Unstructured {
	return object("virtstack.io/v1alpha1", "Bundle", namespace)
}

func (t *bundleTool) again(ctx context.Context, namespace string) error {
	return t.ask(ctx, t.object(namespace), "reconcile.virtstack.io/requestedAt")
}

func (t *bundleTool) pushed(ctx context.Context, namespace string) error {
	return t.again(ctx, namespace)
}

func (t *bundleTool) done(ctx context.Context, namespace, commit string) (bool, string, error) {
	return t.settled(ctx, t.object(namespace), commit)
}

// end leaves the Bundle suspended: it takes no part any more.
func (t *bundleTool) end(ctx context.Context, namespace string) error {
	return errors.Join(t.suspend(ctx, t.object(namespace)), t.machines(ctx, namespace))
}

func (b *bench) suspend(ctx context.Context, o *unstructured.Unstructured) error {
	return b.env.Client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`)))
}

type fluxTool struct {
	*bench
	flux *lab.Flux
}

func (*fluxTool) name() string     { return "flux" }
func (*fluxTool) agents() []string { return []string{"kustomize-controller", "source-controller"} }
func (t *fluxTool) pids() []int    { return t.flux.PIDs() }

func (t *fluxTool) create(ctx context.Context, namespace, url string) error {
	return t.bench.create(ctx, fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: vms, namespace: %[1]s}
spec: {url: %[2]q, ref: {branch: main}, interval: 1h}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: vms, namespace: %[1]s}
spec:
  sourceRef: {kind: GitRepository, name: vms}
  path: ./vms
  interval: 1h
  wait: false
  prune: true
  serviceAccountName: %[3]s
`, namespace, url, account))
}

func (*fluxTool) source(namespace string) *unstructured.Unstructured {
	return object("source.toolkit.fluxcd.io/v1", "GitRepository", namespace)
}

func (*fluxTool) object(namespace string) *unstructured.Unstructured {
	return object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace)
}

// pushed is what a webhook of the Git server does.
func (t *fluxTool) pushed(ctx context.Context, namespace string) error {
	return t.ask(ctx, t.source(namespace), "reconcile.fluxcd.io/requestedAt")
}

// again is what "flux reconcile kustomization vms --with-source" does.
func (t *fluxTool) again(ctx context.Context, namespace string) error {
	source := t.source(namespace)
	if err := t.ask(ctx, source, "reconcile.fluxcd.io/requestedAt"); err != nil {
		return err
	}
	if err := lab.Until(ctx, time.Minute, "the source to be looked at", func(ctx context.Context) (bool, string, error) {
		handled, err := t.handled(ctx, source)
		return handled, "", err
	}); err != nil {
		return err
	}
	return t.ask(ctx, t.object(namespace), "reconcile.fluxcd.io/requestedAt")
}

func (t *fluxTool) handled(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	if err := t.env.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return false, err
	}
	handled, _, _ := unstructured.NestedString(o.Object, "status", "lastHandledReconcileAt")
	return handled == o.GetAnnotations()["reconcile.fluxcd.io/requestedAt"], nil
}

func (t *fluxTool) done(ctx context.Context, namespace, commit string) (bool, string, error) {
	o := t.object(namespace)
	ready, at, err := t.settled(ctx, o, commit)
	if err != nil || !ready || o.GetAnnotations()["reconcile.fluxcd.io/requestedAt"] == "" {
		return ready, at, err
	}
	handled, err := t.handled(ctx, o)
	return handled, at, err
}

// end leaves the Kustomization suspended.
func (t *fluxTool) end(ctx context.Context, namespace string) error {
	return errors.Join(t.suspend(ctx, t.object(namespace)), t.suspend(ctx, t.source(namespace)), t.machines(ctx, namespace))
}
