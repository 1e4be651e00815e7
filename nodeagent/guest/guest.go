// Package guest is the loop of a node agent for the VMIs of its node: it looks at a VMI, its Pod and its launcher, and
// starts, stops and reports. Everything it needs is read anew, so a node agent that restarts finds each guest where
// it was and leaves it alone.
package guest

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/note"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/nodeagent/guest/plan"
	"virtstack.io/virtstack/nodeagent/host"
	"virtstack.io/virtstack/nodeagent/link"
)

// Manager is the field manager of VMI status that a node agent writes.
const Manager = "virt-handler"

// Controller does the rounds.
type Controller struct {
	// Node is the node's name.
	Node string
	// Cache has the VMIs and launcher Pods of this node (OwnerIndex on Pods), and the KubeVirt. Absence from it means
	// nothing: a watch with a selector takes what leaves the selector for deleted.
	Cache client.Reader
	// Live reads from the API server. Nothing is started, stopped or taken over on the cache's word alone.
	Live      client.Reader
	Status    apply.Applier
	Events    events.EventRecorder
	Launchers *link.Launchers
	Network   Network
	Memory    Memory
	VCPUs     VCPUs
	Facts     host.Facts
}

// Round does one round for a VMI.
func (c *Controller) Round(ctx context.Context, key types.NamespacedName, now time.Time) (time.Time, error) {
	vmi := &v1.VirtualMachineInstance{}
	err := c.Cache.Get(ctx, key, vmi)
	if apierrors.IsNotFound(err) || err == nil && !plan.Ours(c.Node, vmi) {
		return time.Time{}, c.keep(key)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("reading VMI %s: %w", key, err)
	}
	seen, err := c.observe(ctx, vmi)
	if err != nil {
		return time.Time{}, err
	}
	p := plan.For(now, seen)
	failed := c.act(ctx, seen.VMI, p.Actions)
	if errors.Is(failed, errStale) || errors.Is(failed, link.ErrUnheard) {
		return now.Add(time.Second), nil // a launcher that stays silent is told of by what Watch says of it
	}
	if failed != nil {
		p = plan.Failed(now, seen, p, failed)
	}
	written, err := c.write(ctx, vmi, p)
	if err != nil {
		return time.Time{}, errors.Join(failed, fmt.Errorf("writing status of VMI %s: %w", key, err))
	}
	if !written {
		return now.Add(time.Second), failed
	}
	return p.Recheck, failed
}

// observe gathers the facts of a round. The VMI in them has what its spec leaves open filled in.
func (c *Controller) observe(ctx context.Context, vmi *v1.VirtualMachineInstance) (plan.Seen, error) {
	var kubevirts v1.KubeVirtList
	if err := c.Cache.List(ctx, &kubevirts); err != nil {
		return plan.Seen{}, fmt.Errorf("reading the configuration: %w", err)
	}
	cfg := config.From(nil)
	if len(kubevirts.Items) > 0 {
		cfg = config.From(&kubevirts.Items[0])
	}
	var pods k8sv1.PodList
	if err := c.Cache.List(ctx, &pods, client.InNamespace(vmi.Namespace), client.MatchingFields{OwnerIndex: string(vmi.UID)}); err != nil {
		return plan.Seen{}, fmt.Errorf("looking for the launcher Pod: %w", err)
	}
	seen := plan.Seen{Node: c.Node, VMI: defaults.Instance(vmi, cfg), Pod: plan.LauncherOf(c.Node, vmi, pods.Items)}
	key := client.ObjectKeyFromObject(vmi)
	if seen.Pod == nil {
		return seen, c.keep(key)
	}
	if err := c.keep(key, seen.Pod.UID); err != nil {
		return plan.Seen{}, err
	}
	_, said := c.Launchers.Link(seen.Pod.UID)
	seen.Guest, seen.Silent, seen.Advertised = said.State, said.Since, c.Network.Advertised(seen.Pod.UID)
	if said.Err != nil {
		seen.Loss = link.Reason(said.Err)
	}
	if mask, ok := realtime(seen.VMI); ok {
		var err error
		if seen.Behind, err = c.VCPUs.Behind(seen.Pod.UID, mask); err != nil {
			return plan.Seen{}, err
		}
	}
	return seen, nil
}

// keep listens to the launchers in these Pods of a VMI, and ends what is held of its others.
func (c *Controller) keep(vmi types.NamespacedName, pods ...types.UID) error {
	c.Network.Keep(vmi, pods...)
	return c.Launchers.Keep(vmi, pods...)
}

// write makes the status what the plan says and tells its events. It reports false where the cache was behind or
// someone else has the fields now: then it is time to look again.
func (c *Controller) write(ctx context.Context, vmi *v1.VirtualMachineInstance, p plan.Plan) (bool, error) {
	if p.Status == nil {
		return true, nil
	}
	live := vmi
	if p.Take || p.Status.Phase != vmi.Status.Phase {
		// A phase moves once, and is taken over only from what virt-controller says now.
		var err error
		if live, err = c.live(ctx, vmi); err != nil || live == nil || live.Status.Phase != vmi.Status.Phase {
			return false, err
		}
	}
	var opts []apply.Option
	if p.Take {
		opts = append(opts, apply.Force())
	}
	switch err := c.Status.Status(ctx, live, p.Status, opts...); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	for _, e := range p.Events {
		c.Events.Eventf(vmi, nil, e.Type, e.Reason, e.Reason, "%s", note.Of(e.Message))
	}
	return true, nil
}

// live reads the VMI from the API server; nil where it is gone, another of its name is there, or it isn't ours.
func (c *Controller) live(ctx context.Context, vmi *v1.VirtualMachineInstance) (*v1.VirtualMachineInstance, error) {
	live := &v1.VirtualMachineInstance{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(vmi), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading VMI %s from the API server: %w", vmi.Name, err)
	}
	if live.UID != vmi.UID || !plan.Ours(c.Node, live) {
		return nil, nil
	}
	return live, nil
}

// OwnerIndex is the index of launcher Pods by the UID of the VMI that controls them.
const OwnerIndex = "controller"

// Owner is the index function of OwnerIndex.
func Owner(pod client.Object) []string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "VirtualMachineInstance" {
		return nil
	}
	return []string{string(owner.UID)}
}
