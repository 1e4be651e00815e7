// Package vm keeps each VM's VMI as its run strategy wants it, and says in the VM's status how that goes.
package vm

import (
	"context"
	"errors"
	"fmt"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"virtstack.io/virtstack/controllers/revision"
	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/loop"
	"virtstack.io/virtstack/kube/settings"
	"virtstack.io/virtstack/machine/names"
)

// Manager is the field manager of everything this controller writes to VMs, and of the VMIs it makes.
const Manager = "virt-controller-vm"

// whileTerminating is when to look again at what can't be made because its namespace is being deleted.
const whileTerminating = 10 * time.Second

// Controller is the loop's shell.
type Controller struct {
	// Client reads from a cache, Live from the API server.
	Client client.Client
	Live   client.Reader
	Events events.EventRecorder
}

// Setup adds the controller to a manager: it works on several VMs at a time.
func (c *Controller) Setup(mgr ctrl.Manager, workers int) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1.VirtualMachine{}, waiting, waitsFor); err != nil {
		return fmt.Errorf("indexing VMs: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("vm").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		For(&v1.VirtualMachine{}).
		Watches(&v1.VirtualMachineInstance{}, handler.EnqueueRequestsFromMapFunc(namesake))
	for kind, object := range revision.Kinds() {
		b = b.Watches(object.(client.Object), c.waiters(kind))
	}
	return b.Complete(loop.Reconciler(c))
}

// namesake returns the VM of a VMI's name: its owner, or one that it keeps from having its own.
func namesake(_ context.Context, vmi client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(vmi)}}
}

// Round does one round for one VM.
func (c *Controller) Round(ctx context.Context, key types.NamespacedName, now time.Time) (time.Time, error) {
	seen, err := c.observe(ctx, key)
	measure(now, key, seen.VM)
	if err != nil || seen.VM == nil {
		return time.Time{}, err
	}
	p := plan.For(now, seen)
	failed := c.act(ctx, seen.VM, p.Actions)
	if apierrors.IsConflict(failed) {
		return time.Time{}, failed // what was seen is no ground for a status either
	}
	status := plan.Failed(now, seen, p, failed)
	err = c.applier().Status(ctx, seen.VM, &status)
	if client.IgnoreNotFound(err) != nil {
		return time.Time{}, errors.Join(failed, fmt.Errorf("writing status of VM %s: %w", key, err))
	}
	if apierrors.HasStatusCause(failed, k8sv1.NamespaceTerminatingCause) {
		return now.Add(whileTerminating), nil // the VM goes with its namespace
	}
	return p.Recheck, failed
}

func (c *Controller) applier() apply.Applier {
	return apply.Applier{Client: c.Client, Manager: Manager}
}

// overrides is the manager of what a user has said in place of a commit.
func (c *Controller) overrides() apply.Applier {
	return apply.Applier{Client: c.Client, Manager: names.OverrideManager}
}

func (c *Controller) observe(ctx context.Context, key types.NamespacedName) (plan.Seen, error) {
	vm := &v1.VirtualMachine{}
	if err := c.Client.Get(ctx, key, vm); err != nil {
		return plan.Seen{}, client.IgnoreNotFound(err)
	}
	seen := plan.Seen{VM: vm, OverrideIsOurs: c.overrides().Owns(vm, "", "metadata", "annotations", names.RunOverride)}
	vmi := &v1.VirtualMachineInstance{}
	err := c.Client.Get(ctx, key, vmi)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return plan.Seen{}, fmt.Errorf("reading VMI %s: %w", key, err)
	case err == nil && metav1.IsControlledBy(vmi, vm):
		seen.VMI = vmi
		seen.Labels, seen.Annotations = c.applier().Keys(vmi, "labels"), c.applier().Keys(vmi, "annotations")
	case err == nil:
		seen.Namesake = true
	}
	find := revision.Finder{Client: c.Client, Live: c.Live}
	if seen.Types, err = find.Find(ctx, vm); err != nil {
		return seen, err
	}
	seen.Config, err = settings.Read(ctx, c.Client)
	return seen, err
}
