package bundle

import (
	"context"
	"errors"
	"flag"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/controllers/bundle/receiver"
	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/loop"
	"virtstack.io/virtstack/kube/process"
	"virtstack.io/virtstack/machine/names"
)

// workers is how many Bundles are worked on at a time.
const workers = 4

// options are the component's own flags.
type options struct {
	sameNamespace bool
	receiver      string
	bases         []string
}

func (o *options) bind(fs *flag.FlagSet) {
	fs.BoolVar(&o.sameNamespace, "no-cross-namespace-refs", true, "refuse a source in another namespace than the Bundle's")
	fs.Func("allow-remote-bases", "URL of a repository, or of what repositories lie beneath, whose directories Bundles may have as bases, by a whole commit; may be repeated", func(allowed string) error {
		o.bases = append(o.bases, allowed)
		return build.CheckBase(allowed)
	})
	fs.StringVar(&o.receiver, "receiver-bind-address", ":9292", "address of the webhook receiver; 0 turns it off")
}

// Process is virt-bundles.
func Process() process.Process {
	o := &options{}
	return process.Process{
		Name:       names.Bundles,
		Elect:      true,
		Scheme:     v1alpha1.AddToScheme,
		FreshReads: true,
		Flags:      o.bind,
		Setup:      o.setup,
	}
}

// setup adds the controller to a manager.
func (o *options) setup(_ context.Context, mgr ctrl.Manager) error {
	c := &Controller{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		status:   apply.Applier{Client: mgr.GetClient(), Manager: fieldManager},
		events:   mgr.GetEventRecorder(names.Bundles),
		as:       impersonating(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}),
		builds:   newBuilds(),
		healthy:  newBuilds(),
		anywhere: !o.sameNamespace,
		bases:    o.bases,
	}
	made, err := ctrl.NewControllerManagedBy(mgr).Named("bundles").
		For(&v1alpha1.Bundle{}, builder.WithPredicates(changed())).
		Watches(&v1alpha1.Bundle{}, handler.EnqueueRequestsFromMapFunc(dependents(mgr.GetCache())), builder.WithPredicates(readiness())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Build(loop.Reconciler(c))
	if err != nil {
		return err
	}
	return errors.Join(metrics.Registry.Register(&Health{Cache: mgr.GetCache(), Leading: mgr.Elected()}),
		mgr.Add(&watcher{mgr, made, mgr.GetClient(), lookForFlux}), o.receive(mgr, c))
}

// receive serves webhooks, in every replica: they end in an annotation that the leader sees.
func (o *options) receive(mgr ctrl.Manager, c *Controller) error {
	if o.receiver == "" || o.receiver == "0" {
		return nil
	}
	r := &receiver.Receiver{
		Bundles: mgr.GetClient(), Write: mgr.GetClient(), Annotation: plan.RequestedAt, Now: time.Now,
		As: func(b *v1alpha1.Bundle) (client.Client, error) { return c.as(b.Namespace, accountOf(b)) },
	}
	return mgr.Add(&manager.Server{Name: "receiver", Server: r.Server(o.receiver)})
}

// changed lets through what a user does; the controller's own status writes bring no round.
func changed() predicate.Predicate {
	requested := predicate.NewPredicateFuncs(func(client.Object) bool { return true })
	requested.UpdateFunc = func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[plan.RequestedAt] != e.ObjectNew.GetAnnotations()[plan.RequestedAt]
	}
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, requested)
}

// impersonating returns what makes clients that have an account's rights and no others.
func impersonating(cfg *rest.Config, options client.Options) func(namespace, account string) (client.Client, error) {
	return func(namespace, account string) (client.Client, error) {
		as := rest.CopyConfig(cfg)
		as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + account}
		return client.New(as, options)
	}
}
