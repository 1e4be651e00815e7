package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
)

// Hop is one step on the way from a commit to a running guest.
type Hop struct {
	Name string
	At   time.Duration // since the start
}

// Hops collects each hop once, at the moment a watch shows it.
type Hops struct {
	start  time.Time
	report func(Hop)
	mu     sync.Mutex
	seen   []Hop
}

// FollowVM watches everything between a commit and the guest of one VM until ctx ends, and reports each hop once.
// commit may be empty: then any revision counts.
func (l *Lab) FollowVM(ctx context.Context, namespace, name, commit string, report func(Hop)) (*Hops, error) {
	h := &Hops{start: time.Now(), report: report}
	for _, w := range []struct {
		list client.ObjectList
		see  func(client.Object)
	}{
		{&v1alpha1.BundleList{}, func(o client.Object) { h.bundle(o.(*v1alpha1.Bundle), commit) }},
		{&v1.VirtualMachineList{}, func(o client.Object) { h.machine(o.(*v1.VirtualMachine), name) }},
		{&v1.VirtualMachineInstanceList{}, func(o client.Object) { h.instance(o.(*v1.VirtualMachineInstance), name) }},
		{&corev1.PodList{}, func(o client.Object) { h.pod(o.(*corev1.Pod), name) }},
	} {
		events, err := l.Client.Watch(ctx, w.list, client.InNamespace(namespace))
		if err != nil {
			return nil, err
		}
		go follow(ctx, events, w.see)
	}
	return h, nil
}

func follow(ctx context.Context, events watch.Interface, see func(client.Object)) {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events.ResultChan():
			if !ok {
				return
			}
			if o, is := e.Object.(client.Object); is && e.Type != watch.Deleted {
				see(o)
			}
		}
	}
}

func (h *Hops) bundle(b *v1alpha1.Bundle, commit string) {
	if strings.Contains(b.Status.LastAttemptedRevision, commit) {
		h.Mark("Bundle fetched the commit")
	}
	if strings.Contains(b.Status.LastAppliedRevision, commit) {
		h.Mark("Bundle applied the commit")
	}
}

func (h *Hops) machine(vm *v1.VirtualMachine, name string) {
	if vm.Name == name {
		h.Mark("VirtualMachine in the API")
	}
}

func (h *Hops) instance(vmi *v1.VirtualMachineInstance, name string) {
	if vmi.Name != name {
		return
	}
	h.Mark("VirtualMachineInstance made")
	switch vmi.Status.Phase {
	case v1.Scheduled:
		h.Mark("handed to virt-handler (Scheduled)")
	case v1.Running:
		h.Mark("guest started (Running)")
	}
}

func (h *Hops) pod(p *corev1.Pod, name string) {
	if p.Annotations["kubevirt.io/domain"] != name {
		return
	}
	h.Mark("launcher Pod made")
	if p.Spec.NodeName != "" {
		h.Mark("launcher Pod bound to " + p.Spec.NodeName)
	}
	running := slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	if running {
		h.Mark("launcher Pod running")
	}
}

// Mark reports a hop the first time it is named.
func (h *Hops) Mark(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.ContainsFunc(h.seen, func(s Hop) bool { return s.Name == name }) {
		return
	}
	hop := Hop{name, time.Since(h.start)}
	h.seen = append(h.seen, hop)
	h.report(hop)
}

// Wait waits for a hop whose name starts with prefix.
func (h *Hops) Wait(ctx context.Context, limit time.Duration, prefix string) error {
	return Until(ctx, limit, prefix, func(context.Context) (bool, string, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		found := slices.ContainsFunc(h.seen, func(s Hop) bool { return strings.HasPrefix(s.Name, prefix) })
		return found, fmt.Sprint(h.seen), nil
	})
}

// Seen returns the hops so far, in order.
func (h *Hops) Seen() []Hop {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}
