package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/kube/settings"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/cpumask"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/size"
	"virtstack.io/virtstack/nodeagent/guest/plan"
	"virtstack.io/virtstack/nodeagent/link"
)

// errStale ends a round whose cache the API server contradicts.
var errStale = errors.New("the cache is behind the API server")

// Network is what the loop asks of the Pods' networks.
type Network interface {
	// Prepare prepares a Pod's network for its guest.
	Prepare(ctx context.Context, pod *k8sv1.Pod, vmi *v1.VirtualMachineInstance) ([]*guestv1.Interface, error)
	// Advertise tells the guest in a Pod of its IPv6 router until Keep is called without the Pod.
	Advertise(ctx context.Context, pod *k8sv1.Pod, vmi *v1.VirtualMachineInstance) error
	// Advertised tells whether that is being done.
	Advertised(pod types.UID) bool
	// Keep ends what is done for a VMI in other Pods than these.
	Keep(vmi types.NamespacedName, pods ...types.UID)
}

// Memory is what the loop asks of the memory of launchers.
type Memory interface {
	// LockMemory lets the processes of a launcher lock that many bytes.
	LockMemory(ctx context.Context, pod types.UID, bytes uint64) error
}

// VCPUs are the threads of guests' virtual CPUs.
type VCPUs interface {
	// Behind tells whether one in the mask of a Pod's guest has others before it, Prefer puts them first.
	Behind(pod types.UID, mask cpumask.Mask) (bool, error)
	Prefer(pod types.UID, mask cpumask.Mask) error
}

// realtime returns the mask of a VMI's virtual CPUs that come first; false where none do, or the mask can't be read,
// which admission refuses.
func realtime(vmi *v1.VirtualMachineInstance) (cpumask.Mask, bool) {
	c := vmi.Spec.Domain.CPU
	if c == nil || c.Realtime == nil || !c.DedicatedCPUPlacement {
		return nil, false
	}
	mask, err := cpumask.Parse(c.Realtime.Mask)
	return mask, err == nil
}

func (c *Controller) act(ctx context.Context, vmi *v1.VirtualMachineInstance, actions []plan.Action) error {
	for _, a := range actions {
		if err := c.one(ctx, vmi, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		log.FromContext(ctx).Info(a.String())
	}
	return nil
}

func (c *Controller) one(ctx context.Context, vmi *v1.VirtualMachineInstance, a plan.Action) error {
	switch a := a.(type) {
	case plan.Start:
		return c.start(ctx, vmi, a.Pod)
	case plan.Advertise:
		return c.Network.Advertise(ctx, a.Pod, vmi)
	case plan.Prefer:
		mask, _ := realtime(vmi)
		return c.VCPUs.Prefer(a.Pod.UID, mask)
	case plan.Press:
		return c.press(ctx, vmi, a.Pod)
	case plan.DumpMemory:
		return c.dump(ctx, a.Pod, func(l *link.Link) error {
			return l.DumpMemory(ctx, &guestv1.DumpMemory{Volume: a.Volume, File: a.File, Timeout: uint32(a.Patience.Seconds()), Bytes: uint64(a.Bytes)})
		})
	case plan.StopDump:
		return c.dump(ctx, a.Pod, func(l *link.Link) error { return l.StopDump(ctx) })
	case plan.Kill:
		return c.stop(ctx, vmi, a.Pod, (*link.Link).Kill)
	}
	return fmt.Errorf("unknown action %T", a)
}

// press presses the guest's power button. That it fails is no failure: the guest may be deaf, or just have ended. The
// launcher tells whether it is the first time, for agents come and go.
func (c *Controller) press(ctx context.Context, vmi *v1.VirtualMachineInstance, pod *k8sv1.Pod) error {
	again := false
	err := c.stop(ctx, vmi, pod, func(to *link.Link, ctx context.Context) (err error) {
		again, err = to.Shutdown(ctx)
		return err
	})
	switch {
	case errors.Is(err, errStale):
		return err
	case err != nil:
		log.FromContext(ctx).Info("the guest was not asked to shut down", "reason", err.Error())
	case !again:
		c.Events.Eventf(vmi, nil, k8sv1.EventTypeNormal, "ShuttingDown", "ShuttingDown", "The guest is asked to shut down.")
	}
	return nil
}

// start starts the guest, unless the API server knows better than the cache: a guest that was started for a VMI that
// is no longer this node's would be the second.
func (c *Controller) start(ctx context.Context, vmi *v1.VirtualMachineInstance, pod *k8sv1.Pod) error {
	live, err := c.live(ctx, vmi)
	if err != nil {
		return err
	}
	if live == nil || live.DeletionTimestamp != nil || live.Status.ActivePods[pod.UID] != c.Node {
		return errStale
	}
	interfaces, err := c.Network.Prepare(ctx, pod, vmi)
	if err != nil {
		return fmt.Errorf("preparing the network: %w", err)
	}
	cfg, err := settings.Read(ctx, c.Cache)
	if err != nil {
		return err
	}
	if bytes := size.Locked(vmi, cfg); bytes > 0 {
		if err := c.Memory.LockMemory(ctx, pod.UID, uint64(bytes)); err != nil {
			return err
		}
	}
	bare := vmi.DeepCopy()
	bare.ManagedFields = nil
	raw, err := json.Marshal(bare)
	if err != nil {
		return err
	}
	to, _ := c.Launchers.Link(pod.UID)
	if to == nil {
		return errStale
	}
	_, err = to.Sync(ctx, &guestv1.SyncVirtualMachineRequest{
		Vmi:        raw,
		Node:       c.facts(pod, cfg),
		Interfaces: interfaces,
	})
	return told(err)
}

// facts are what the launcher in a Pod is told of this node and of the configuration.
func (c *Controller) facts(pod *k8sv1.Pod, cfg config.Config) *guestv1.NodeFacts {
	return &guestv1.NodeFacts{
		Name: c.Node, Kvm: c.Facts.KVM && asksForKVM(pod), CapabilityCache: c.Facts.Cache,
		BalloonPeriod: &cfg.BalloonPeriod, KeepFreePages: cfg.KeepFreePages,
		Smbios: &guestv1.Smbios{
			Manufacturer: cfg.SMBIOS.Manufacturer, Product: cfg.SMBIOS.Product, Family: cfg.SMBIOS.Family,
			Version: cfg.SMBIOS.Version, Sku: cfg.SMBIOS.Sku,
		},
	}
}

// stop stops a guest after the API server has confirmed that its VMI is being deleted, or is gone: never on the word of
// a cache.
func (c *Controller) stop(ctx context.Context, vmi *v1.VirtualMachineInstance, pod *k8sv1.Pod, how func(*link.Link, context.Context) error) error {
	live := &v1.VirtualMachineInstance{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(vmi), live)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("asking the API server whether it is deleted: %w", err)
	case live.UID == vmi.UID && live.DeletionTimestamp == nil:
		return errStale
	}
	to, _ := c.Launchers.Link(pod.UID)
	if to == nil {
		return errStale
	}
	return told(how(to, ctx))
}

// dump asks a launcher for a dump, or for its end. One that refuses, as an older one does, harms no guest: virt-controller
// stops waiting for it.
func (c *Controller) dump(ctx context.Context, pod *k8sv1.Pod, ask func(*link.Link) error) error {
	to, _ := c.Launchers.Link(pod.UID)
	if to == nil {
		return errStale
	}
	err := told(ask(to))
	if err == nil || errors.Is(err, link.ErrUnheard) {
		return err
	}
	log.FromContext(ctx).Info("the launcher does not dump the guest's memory", "reason", err.Error())
	return nil
}

// asksForKVM tells whether the launcher was given /dev/kvm: configuration may say that guests are emulated.
func asksForKVM(pod *k8sv1.Pod) bool {
	for _, c := range pod.Spec.Containers {
		if q, ok := c.Resources.Limits[names.KVMDevice]; c.Name == guestv1.ComputeContainer && ok {
			return !q.IsZero()
		}
	}
	return false
}

// told makes a launcher's refusal readable.
func told(err error) error {
	if err == nil || errors.Is(err, link.ErrUnheard) {
		return err
	}
	return errors.New(link.Reason(err))
}
