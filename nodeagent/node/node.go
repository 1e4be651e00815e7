// Package node keeps the Node object that the node agent runs on up to date: what it can do, and that it is served.
package node

import (
	"context"
	"fmt"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/nodeagent/host"
	"virtstack.io/virtstack/nodeagent/node/plan"
)

// Manager is the field manager of what the node agent writes.
const Manager = "virt-handler"

// Labeller writes labels and heartbeat of one Node. When it is told to stop it leaves the Node as it is: the label
// that launcher Pods select on would, taken away for an upgrade, make a kubelet that restarts meanwhile refuse the
// Pods that run; virt-controller takes a node out of service whose heartbeat is old.
type Labeller struct {
	Node    string
	Client  client.Client
	Facts   host.Facts
	Serving func() bool
	// StaticCPUs tells whether the kubelet gives CPUs to Pods for themselves, which changes only when it is set up anew.
	StaticCPUs func() bool
}

// cpuManager is the feature gate without which no VMI may ask for CPUs for itself.
const cpuManager = "CPUManager"

// Round does one round.
func (l *Labeller) Round(ctx context.Context, key types.NamespacedName, now time.Time) (time.Time, error) {
	if key.Name != l.Node {
		return time.Time{}, nil
	}
	var node k8sv1.Node
	if err := l.Client.Get(ctx, key, &node); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	var kubevirts v1.KubeVirtList
	if err := l.Client.List(ctx, &kubevirts); err != nil {
		return time.Time{}, fmt.Errorf("reading the configuration: %w", err)
	}
	cfg := effective(kubevirts.Items)
	p := plan.For(now, plan.Seen{
		Node: &node, Serving: l.Serving(), Facts: l.Facts, Obsolete: cfg.ObsoleteCPUModels, Emulated: cfg.UseEmulation,
		StaticCPUs: cfg.Enabled(cpuManager) && l.StaticCPUs(),
	})
	patch, err := p.Patch(node.UID)
	if err != nil {
		return time.Time{}, err
	}
	if patch != nil {
		target := &k8sv1.Node{}
		target.Name = node.Name
		if err := l.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Manager)); err != nil {
			return time.Time{}, fmt.Errorf("writing labels and heartbeat of node %s: %w", node.Name, err)
		}
	}
	// A fleet that was started at once must not beat as one.
	return now.Add(wait.Jitter(p.Recheck.Sub(now), 0.2)), nil
}

func effective(kubevirts []v1.KubeVirt) config.Config {
	if len(kubevirts) == 0 {
		return config.From(nil)
	}
	return config.From(&kubevirts[0])
}
