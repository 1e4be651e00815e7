// Package vmi runs VMIs until their node's agent takes over: it makes the launcher Pod, follows it, and cleans up.
package vmi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/controllers/vmi/plan"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/loop"
	"virtstack.io/virtstack/kube/note"
	"virtstack.io/virtstack/kube/settings"
	"virtstack.io/virtstack/machine/names"
)

// Manager is the field manager of everything this controller writes to VMIs and Pods.
const Manager = "virt-controller-vmi"

// whileTerminating is when to look again at what can't be made because its namespace is being deleted.
const whileTerminating = 10 * time.Second

// Controller is the loop's shell.
type Controller struct {
	// Client reads from a cache, Live from the API server.
	Client client.Client
	Live   client.Reader
	Events events.EventRecorder
	// Image is the launcher's.
	Image string

	// claiming is held while a Pod is made whose claims others may write to.
	claiming sync.Mutex
}

// Setup adds the controller to a manager: it works on several VMIs at a time.
func (c *Controller) Setup(mgr ctrl.Manager, workers int) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1.VirtualMachineInstance{}, byNode, nodeOf); err != nil {
		return fmt.Errorf("indexing VMIs: %w", err)
	}
	if err := indexClaims(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("vmi").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		For(&v1.VirtualMachineInstance{}).
		Owns(&k8sv1.Pod{}).
		Watches(&k8sv1.Node{}, handler.EnqueueRequestsFromMapFunc(c.onNode), builder.WithPredicates(reachability())).
		Watches(&v1.KubeVirt{}, handler.EnqueueRequestsFromMapFunc(c.waiting)).
		Watches(&k8sv1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(c.readers)).
		Watches(&k8sv1.Pod{}, handler.EnqueueRequestsFromMapFunc(c.heirs)).
		Complete(loop.Reconciler(c))
}

// waiting returns the VMIs that a change of the configuration may help: those without a Pod.
func (c *Controller) waiting(ctx context.Context, _ client.Object) []reconcile.Request {
	var list v1.VirtualMachineInstanceList
	if err := c.Client.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing VMIs after a change of the configuration")
		return nil
	}
	return loop.Requests(slices.DeleteFunc(list.Items, func(vmi v1.VirtualMachineInstance) bool { return plan.HadPod(&vmi) }))
}

// Round does one round for one VMI.
func (c *Controller) Round(ctx context.Context, key types.NamespacedName, now time.Time) (time.Time, error) {
	seen, err := c.observe(ctx, key)
	if err != nil || seen.VMI == nil {
		return time.Time{}, err
	}
	p := plan.For(now, seen)
	failed := c.act(ctx, p.Actions)
	if apierrors.IsConflict(failed) {
		return time.Time{}, failed // what was seen is no ground for a status either
	}
	status := plan.Failed(now, seen, p, failed)
	var opts []apply.Option
	if p.TakeBack {
		opts = append(opts, apply.Force())
	}
	err = c.applier().Status(ctx, seen.VMI, &status, opts...)
	if client.IgnoreNotFound(err) != nil {
		return time.Time{}, errors.Join(failed, fmt.Errorf("writing status of VMI %s: %w", key, err))
	}
	c.report(seen.VMI, p.Reports)
	if apierrors.HasStatusCause(failed, k8sv1.NamespaceTerminatingCause) {
		return now.Add(whileTerminating), nil // the VMI goes with its namespace
	}
	return p.Recheck, failed
}

// report makes events of what the status says since this round.
func (c *Controller) report(vmi *v1.VirtualMachineInstance, reports []plan.Report) {
	for _, r := range reports {
		c.Events.Eventf(vmi, nil, k8sv1.EventTypeWarning, r.Reason, "EndVMI", "%s", note.Of(r.Message))
	}
}

func (c *Controller) applier() apply.Applier {
	return apply.Applier{Client: c.Client, Manager: Manager}
}

func (c *Controller) observe(ctx context.Context, key types.NamespacedName) (plan.Seen, error) {
	vmi := &v1.VirtualMachineInstance{}
	if err := c.Client.Get(ctx, key, vmi); err != nil {
		return plan.Seen{}, client.IgnoreNotFound(err)
	}
	seen := plan.Seen{VMI: vmi}
	seen.PhaseOurs = vmi.Status.Phase == v1.VmPhaseUnset || c.applier().Owns(vmi, "status", "status", "phase")
	var err error
	if seen.Node, err = c.node(ctx, vmi.Status.NodeName); err != nil {
		return plan.Seen{}, err
	}
	if seen.Claims, err = c.claims(ctx, vmi); err != nil {
		return plan.Seen{}, err
	}
	seen.Pod, err = c.pod(ctx, c.Client, vmi)
	if err != nil {
		return plan.Seen{}, err
	}
	if seen.Pod == nil && (plan.HadPod(vmi) || vmi.DeletionTimestamp != nil) {
		seen.Pod, err = c.pod(ctx, c.Live, vmi)
		if err != nil {
			return plan.Seen{}, err
		}
		seen.PodGone = seen.Pod == nil
	}
	if seen.Pod != nil {
		seen.Labels, seen.Annotations = podspec.Labels(vmi), podspec.Annotations(vmi)
		seen.OurLabels, seen.OurAnnotations = c.applier().Keys(seen.Pod, "labels"), c.applier().Keys(seen.Pod, "annotations")
		seen.TakenCIDs, err = c.takenCIDs(ctx, seen.VMI, seen.Pod.Spec.NodeName)
		return seen, err
	}
	if plan.HadPod(vmi) {
		return seen, nil
	}
	rivals, err := c.rivals(ctx, vmi)
	if err != nil {
		return seen, err
	}
	if seen.Held, err = c.held(ctx, c.Client, rivals); err != nil {
		return seen, err
	}
	if seen.Imports, err = imports(ctx, c.Live, seen.Claims); err != nil {
		return plan.Seen{}, err
	}
	return seen, c.render(ctx, &seen)
}

// pod returns the VMI's launcher Pod; nil if there is none. A namesake that isn't the VMI's is none of its.
func (c *Controller) pod(ctx context.Context, from client.Reader, vmi *v1.VirtualMachineInstance) (*k8sv1.Pod, error) {
	pod := &k8sv1.Pod{}
	err := from.Get(ctx, types.NamespacedName{Namespace: vmi.Namespace, Name: names.LauncherPod(vmi.Name, vmi.UID)}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the Pod of VMI %s: %w", vmi.Name, err)
	case !plan.Owns(vmi.UID, pod):
		return nil, nil
	}
	return pod, nil
}

func (c *Controller) render(ctx context.Context, seen *plan.Seen) error {
	cfg, err := settings.Read(ctx, c.Client)
	if err != nil {
		return err
	}
	seen.Rendered, seen.Unrendered = podspec.Render(seen.VMI, cfg, c.Image, modes(seen.Claims))
	if seen.Unrendered != nil {
		return nil
	}
	devices, err := networkResources(ctx, c.Live, seen.VMI)
	if err != nil {
		return err
	}
	podspec.TakeDevices(seen.Rendered, devices)
	seen.State, err = c.missingState(ctx, seen.VMI, cfg)
	return err
}
