// Package plan decides what a node agent writes to its own Node. It is pure.
package plan

import (
	"encoding/json"
	"strconv"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/nodeagent/host"
)

// Interval is the time between heartbeats; virt-controller takes a node out of service after five minutes without.
const Interval = time.Minute

// skipLabels on a node, whatever its value, leaves its labels about CPUs and machines to the administrator.
const skipLabels = "node-labeller.kubevirt.io/skip-node"

// Seen are one round's facts.
type Seen struct {
	Node *k8sv1.Node
	// Serving is set once every device plugin is registered: before, a launcher Pod would find no device.
	Serving bool
	Facts   host.Facts
	// StaticCPUs is set where Pods get CPUs for themselves, and VMIs may ask for that.
	StaticCPUs bool
	Obsolete   map[string]bool // CPU models that aren't offered
	// Emulated is set where guests run without KVM, be it there or not.
	Emulated bool
}

// Plan is what to write, and when to look again.
type Plan struct {
	// Labels and Annotations to set, or with nil to take away; both empty: nothing to write.
	Labels, Annotations map[string]*string
	Recheck             time.Time
}

// For returns the plan. The heartbeat is renewed when it is an Interval old, and with any other change.
func For(now time.Time, s Seen) Plan {
	p := Plan{Labels: map[string]*string{}, Annotations: map[string]*string{}}
	serving := "false"
	if s.Serving {
		serving = "true"
	}
	p.label(s.Node, names.Schedulable, serving)
	if _, skip := s.Node.Annotations[skipLabels]; !skip {
		p.capabilities(s)
	}
	last := heartbeat(s.Node)
	if len(p.Labels) == 0 && last.Before(now.Add(time.Second)) && now.Sub(last) < Interval {
		p.Recheck = last.Add(Interval)
		return p
	}
	// The value is JSON, as clients of the contract expect.
	beat, _ := json.Marshal(now.UTC().Format(time.RFC3339))
	p.Annotations[names.Heartbeat] = new(string(beat))
	p.Recheck = now.Add(Interval)
	return p
}

func (p Plan) capabilities(s Seen) {
	want := Labels(s.Facts, s.Emulated, s.Obsolete)
	for _, key := range []string{v1.CPUManager, v1.DeprecatedCPUManager} {
		want[key] = strconv.FormatBool(s.StaticCPUs)
	}
	for key, value := range want {
		p.label(s.Node, key, value)
	}
	for key := range s.Node.Labels {
		if _, keep := want[key]; !keep && isOurs(key) {
			p.Labels[key] = nil
		}
	}
}

func (p Plan) label(node *k8sv1.Node, key, value string) {
	if have, ok := node.Labels[key]; !ok || have != value {
		p.Labels[key] = &value
	}
}

// heartbeat returns when the node agent last wrote, zero where it can't be read.
func heartbeat(node *k8sv1.Node) time.Time {
	var text string
	if json.Unmarshal([]byte(node.Annotations[names.Heartbeat]), &text) != nil {
		return time.Time{}
	}
	t, _ := time.Parse(time.RFC3339, text)
	return t
}

// Patch returns the plan as a JSON merge patch of the Node with that UID, nil where there is nothing to write.
func (p Plan) Patch(uid types.UID) ([]byte, error) {
	if len(p.Labels) == 0 && len(p.Annotations) == 0 {
		return nil, nil
	}
	metadata := map[string]any{"uid": uid, "labels": p.Labels, "annotations": p.Annotations}
	return json.Marshal(map[string]any{"metadata": metadata})
}
