package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/bundles"
	"virtstack.io/virtstack/controllers/bundle"
	"virtstack.io/virtstack/controllers/operator/render"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/loop"
	"virtstack.io/virtstack/kube/process"
	"virtstack.io/virtstack/machine/names"
)

// Execute runs virt-operator, or with "bundles" as the first argument the Bundle controllers, and returns the exit
// code.
func Execute() int {
	if len(os.Args) > 1 && os.Args[1] == "bundles" {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		return bundle.Process().Execute()
	}
	return Process(render.Images{Component: os.Getenv("VIRTSTACK_IMAGE"), Launcher: os.Getenv("VIRT_LAUNCHER_IMAGE")}).Execute()
}

// Process is virt-operator, which installs these images.
func Process(images render.Images) process.Process {
	here := cache.ByObject{Namespaces: map[string]cache.Config{names.Namespace: {}}}
	return process.Process{
		Name:  names.Operator,
		Elect: true,
		Scheme: func(s *runtime.Scheme) error {
			return errors.Join(apiextensionsv1.AddToScheme(s), v1alpha1.AddToScheme(s))
		},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: here, &appsv1.DaemonSet{}: here, &corev1.Secret{}: here, &corev1.ConfigMap{}: here,
		}},
		Setup: func(_ context.Context, mgr ctrl.Manager) error {
			return errors.Join(setup(mgr, images), serve(mgr))
		},
	}
}

func setup(mgr ctrl.Manager, images render.Images) error {
	c := mgr.GetClient()
	live := mgr.GetAPIReader()
	installer := &Controller{
		client: c, live: live,
		status: apply.Applier{Client: c, Manager: fieldManager},
		events: mgr.GetEventRecorder(names.Operator),
		files:  bundles.Components(),
		images: images,
	}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return everyKubeVirt(ctx, c)
	})
	ca := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == names.CAConfigMap }))
	return errors.Join(
		ctrl.NewControllerManagedBy(mgr).Named("install").For(&v1.KubeVirt{}).
			Watches(&appsv1.Deployment{}, all).Watches(&appsv1.DaemonSet{}, all).Watches(&corev1.ConfigMap{}, all, ca).
			Complete(loop.Reconciler(installer)),
		ctrl.NewControllerManagedBy(mgr).Named("certificates").For(&v1.KubeVirt{}).
			Watches(&corev1.Secret{}, all).Watches(&corev1.ConfigMap{}, all, ca).
			Complete(loop.Reconciler(&Certifier{client: c, live: live})),
		ctrl.NewControllerManagedBy(mgr).Named("node-agents").For(&certificatesv1.CertificateSigningRequest{}).
			Complete(loop.Reconciler(&Signer{client: c, live: live})),
	)
}

func everyKubeVirt(ctx context.Context, c client.Reader) []reconcile.Request {
	var list v1.KubeVirtList
	if err := c.List(ctx, &list); err != nil {
		return nil // the cache is not there yet: it brings every KubeVirt itself
	}
	return loop.Requests(list.Items)
}

// serve adds the webhook, which every replica answers.
func serve(mgr ctrl.Manager) error {
	live := mgr.GetAPIReader()
	s := webhook.NewServer(webhook.Options{
		Port:    names.WebhookPort,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = own(live) }},
	})
	s.Register(uninstallPath, &webhook.Admission{Handler: uninstall{live}})
	return mgr.Add(s)
}
