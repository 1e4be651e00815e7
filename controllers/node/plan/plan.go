// Package plan says when a node is taken out of service because its node agent has fallen silent. It is pure.
package plan

import (
	"fmt"
	"strings"
	"time"

	k8sv1 "k8s.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
)

// Silence is how old a heartbeat may be; source: contract §3.
const Silence = 5 * time.Minute

// Plan is what to do about one node.
type Plan struct {
	// Unschedulable is why no more launcher Pods may come to the node; empty: nothing to do.
	Unschedulable string
	// Recheck is when the heartbeat will be too old if none comes; zero: nothing to wait for.
	Recheck time.Time
}

// For decides about a node; nil is a node that is gone. Nodes that no agent ever labelled are none of ours.
func For(now time.Time, node *k8sv1.Node) Plan {
	if node == nil || node.Labels[names.Schedulable] != "true" {
		return Plan{}
	}
	raw := strings.Trim(node.Annotations[names.Heartbeat], `"`)
	beat, err := time.Parse(time.RFC3339, raw)
	if err != nil {
		return Plan{Unschedulable: fmt.Sprintf("its heartbeat %q is no RFC 3339 time", raw)}
	}
	if end := beat.Add(Silence); now.Before(end) {
		return Plan{Recheck: end}
	}
	return Plan{Unschedulable: fmt.Sprintf("its last heartbeat was at %s, more than %s ago", raw, Silence)}
}
