package plan_test

import (
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"

	"virtstack.io/virtstack/controllers/node/plan"
	"virtstack.io/virtstack/machine/names"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func node(schedulable, heartbeat string) *k8sv1.Node {
	n := &k8sv1.Node{}
	n.Labels = map[string]string{names.Schedulable: schedulable}
	n.Annotations = map[string]string{names.Heartbeat: heartbeat}
	return n
}

func TestSilentNodesAreTakenOutOfService(t *testing.T) {
	minute := now.Add(-time.Minute)
	for name, tc := range map[string]struct {
		node    *k8sv1.Node
		out     bool
		recheck time.Time
	}{
		"gone":                    {nil, false, time.Time{}},
		"never labelled":          {&k8sv1.Node{}, false, time.Time{}},
		"out already":             {node("false", ""), false, time.Time{}},
		"alive":                   {node("true", minute.Format(time.RFC3339)), false, minute.Add(plan.Silence)},
		"alive, as a JSON text":   {node("true", `"`+minute.Format(time.RFC3339)+`"`), false, minute.Add(plan.Silence)},
		"silent":                  {node("true", now.Add(-plan.Silence).Format(time.RFC3339)), true, time.Time{}},
		"heartbeat can't be read": {node("true", "soon"), true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.For(now, tc.node)
			if (got.Unschedulable != "") != tc.out || !got.Recheck.Equal(tc.recheck) {
				t.Errorf("got %+v, want out of service %t, recheck %s", got, tc.out, tc.recheck)
			}
		})
	}
}
