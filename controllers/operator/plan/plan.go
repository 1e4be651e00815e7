package plan

import (
	"fmt"
	"strings"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
)

// Finalizer keeps a deleted KubeVirt until what it installed is gone.
const Finalizer = "foregroundDeleteKubeVirt"

// Times of a roll-out.
const (
	// Deadline is how long one roll-out may take before it counts as failed. It is tried further.
	Deadline = 10 * time.Minute
	// soon is when to look again at what changes without an event.
	soon = time.Second
	// often is when to look again at objects that someone else may have changed.
	often = 5 * time.Minute
)

// Seen is what one round has observed.
type Seen struct {
	KubeVirt *v1.KubeVirt
	// First is the KubeVirt that came before this one, "" if there is none.
	First string
	// Foreign tells where another product's KubeVirt was found, "" for nowhere.
	Foreign string
	// Kinds are problems with the CRDs that this version needs.
	Kinds []string
	// Certified says that the certificates are there.
	Certified bool
	// Build is why the component bundle can't be rendered, nil if it can.
	Build error
	// Unanswered says why the components can't be fetched now, "" if they were.
	Unanswered string
	// Stale says why it is not known whether the components are the newest, "" if it is known.
	Stale string
	// Rejected says why a newer commit of the components isn't taken, "" if there is none such.
	Rejected string
	// Look is when to look again at where they come from, zero for those of the operator itself.
	Look time.Duration
	// Target is what is to run; Recorded says that the inventory names all of it.
	Target   Target
	Recorded bool
	// Stages are in order, up to the first that is not ready.
	Stages []StageSeen
	// Registrations are API services, looked at when a stage before theirs isn't ready; Served says that their server is.
	Registrations []Registration
	Served        bool
	// Orphans are in the inventory, exist, and are not part of the target.
	Orphans []string
	// Workloads are looked for, and Left filled, when the KubeVirt is being deleted.
	Workloads Workloads
	Left      map[Stage][]string
	// Marked are nodes with labels or annotations of ours, looked for when nothing is Left that writes them.
	Marked []string
}

// Target identifies what is to run.
type Target struct{ Version, Registry, ID, Config string }

// StageSeen is the state of one stage.
type StageSeen struct {
	Stage Stage
	// Changes are objects that have to be written, Refused why one can't be.
	Changes []string
	Refused string
	// Unanswered says why it couldn't be told: the API server didn't answer, which says nothing about the objects.
	Unanswered string
	// Waiting says what is not ready yet, Failed that it won't be by itself.
	Waiting string
	Failed  bool
}

// Ready reports whether the next stage may be looked at.
func (s StageSeen) Ready() bool {
	return len(s.Changes) == 0 && s.Refused == "" && s.Unanswered == "" && s.Waiting == ""
}

// Workloads are the VMs and VMIs of a cluster.
type Workloads struct {
	VMs, VMIs int
	Example   string
}

func (w Workloads) none() bool { return w.VMs+w.VMIs == 0 }

func (w Workloads) String() string {
	return fmt.Sprintf("%d VirtualMachines and %d VirtualMachineInstances, for example %s", w.VMs, w.VMIs, w.Example)
}

// Blocked returns why a KubeVirt can't be deleted now, "" if it can.
func Blocked(kv *v1.KubeVirt, w Workloads) string {
	if w.none() || kv.Spec.UninstallStrategy == v1.KubeVirtUninstallStrategyRemoveWorkloads {
		return ""
	}
	return fmt.Sprintf("there are still %s; delete them, or set spec.uninstallStrategy to RemoveWorkloads", w)
}

// Plan is what one round does.
type Plan struct {
	Actions []Action
	Status  v1.KubeVirtStatus
	Recheck time.Time
}

// Action is one thing to do.
type Action interface{ String() string }

// The actions.
type (
	// Hold adds the finalizer.
	Hold struct{}
	// Release drops the finalizer.
	Release struct{}
	// Record writes the inventory.
	Record struct{}
	// Apply writes the changes of a stage.
	Apply struct {
		Stage   Stage
		Objects []string
	}
	// Prune removes what is no longer part of the target.
	Prune struct{ Objects []string }
	// Remove removes what is installed of a stage.
	Remove struct {
		Stage   Stage
		Objects []string
	}
	// RemoveWorkloads deletes all VMs and VMIs.
	RemoveWorkloads struct{ Workloads Workloads }
	// UnmarkNodes takes our labels and annotations off nodes.
	UnmarkNodes struct{ Nodes []string }
	// RemoveRecords removes certificates and inventory.
	RemoveRecords struct{}
)

func (Hold) String() string              { return "adding the finalizer" }
func (Release) String() string           { return "dropping the finalizer" }
func (Record) String() string            { return "recording the inventory" }
func (a Apply) String() string           { return "applying " + a.Stage.String() + ": " + few(a.Objects) }
func (a Prune) String() string           { return "pruning " + few(a.Objects) }
func (a Remove) String() string          { return "removing " + a.Stage.String() + ": " + few(a.Objects) }
func (a RemoveWorkloads) String() string { return "removing " + a.Workloads.String() }
func (a UnmarkNodes) String() string {
	return "removing labels and annotations of nodes: " + few(a.Nodes)
}
func (RemoveRecords) String() string { return "removing certificates and inventory" }

func few(objects []string) string {
	const most = 3
	if len(objects) <= most {
		return strings.Join(objects, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(objects[:most], ", "), len(objects)-most)
}

// For returns the plan of one round.
func For(now time.Time, s Seen) Plan {
	kv := s.KubeVirt
	switch {
	case kv.DeletionTimestamp != nil:
		return deletion(now, s)
	case s.First != "":
		return refuse(now, s, "ExistingDeployment", "the cluster has a KubeVirt already: "+s.First)
	case kv.Namespace != names.Namespace:
		return refuse(now, s, "DeploymentFailed", "the KubeVirt must be in namespace "+names.Namespace)
	case s.Foreign != "":
		return refuse(now, s, "DeploymentFailed", "another KubeVirt is installed: "+s.Foreign+"; remove it first")
	case !held(kv):
		return Plan{Actions: []Action{Hold{}}, Status: status(now, s, deploying("making the first step"))}
	case s.Unanswered != "":
		return Unanswered(now, s, s.Unanswered)
	case s.Build != nil:
		return rejected(now, s, "rendering the component bundle: "+s.Build.Error())
	case len(s.Kinds) > 0:
		return wait(now, s, "waiting for CRDs, which come with the operator's manifests: "+few(s.Kinds))
	case !s.Certified:
		return wait(now, s, "waiting for certificates")
	case !s.Recorded:
		return Plan{Actions: []Action{Record{}}, Status: status(now, s, progress(now, s, "recording what is installed", false)), Recheck: now.Add(soon)}
	}
	p := rollOut(now, s)
	p.Actions = append(registering(now, s), p.Actions...)
	return p
}

func rollOut(now time.Time, s Seen) Plan {
	for _, stage := range s.Stages {
		switch {
		case stage.Ready():
		case stage.Refused != "":
			return refuse(now, s, "DeploymentFailed", stage.Stage.String()+": "+stage.Refused)
		case stage.Unanswered != "":
			return Unanswered(now, s, stage.Stage.String()+": "+stage.Unanswered)
		case len(stage.Changes) > 0:
			p := Plan{Recheck: now.Add(soon), Actions: []Action{Apply{stage.Stage, stage.Changes}}}
			p.Status = status(now, s, progress(now, s, "applying "+stage.Stage.String(), false))
			return p
		default:
			p := Plan{Recheck: now.Add(2 * soon)}
			p.Status = status(now, s, progress(now, s, stage.Stage.String()+": "+stage.Waiting, stage.Failed))
			return p
		}
	}
	if len(s.Orphans) > 0 {
		return Plan{
			Actions: []Action{Prune{s.Orphans}},
			Status:  status(now, s, progress(now, s, "removing "+few(s.Orphans), false)),
			Recheck: now.Add(soon),
		}
	}
	done := ready()
	switch {
	case s.Rejected != "":
		done = halted(s.Rejected)
	case s.Stale != "":
		done = retrying(done, s.Stale)
	}
	return Plan{Status: status(now, s, done), Recheck: now.Add(s.again())}
}

// again is how long an install that is as it should be is left alone.
func (s Seen) again() time.Duration {
	if s.Look > 0 && s.Look < often {
		return s.Look
	}
	return often
}

func wait(now time.Time, s Seen, why string) Plan {
	return Plan{Status: status(now, s, progress(now, s, why, false)), Recheck: now.Add(2 * soon)}
}

func refuse(now time.Time, s Seen, reason, why string) Plan {
	return Plan{Status: status(now, s, failed(reason, why)), Recheck: now.Add(time.Minute)}
}

// rejected is the plan of a round that has nothing to roll out: what runs goes on.
func rejected(now time.Time, s Seen, why string) Plan {
	if undisturbed(s) {
		return Plan{Status: status(now, s, halted(why)), Recheck: now.Add(time.Minute)}
	}
	return refuse(now, s, "DeploymentFailed", why)
}

func deletion(now time.Time, s Seen) Plan {
	kv := s.KubeVirt
	if !held(kv) {
		return Plan{Status: kv.Status}
	}
	if s.First != "" {
		return Plan{Actions: []Action{Release{}}, Status: kv.Status}
	}
	if why := Blocked(kv, s.Workloads); why != "" {
		return Plan{Status: status(now, s, blocked(kv.Status, why)), Recheck: now.Add(10 * soon)}
	}
	p := Plan{Status: status(now, s, deleting(s)), Recheck: now.Add(soon)}
	if !s.Workloads.none() {
		p.Actions = []Action{RemoveWorkloads{s.Workloads}}
		return p
	}
	for stage := stages - 1; stage >= 0; stage-- {
		if left := s.Left[stage]; len(left) > 0 {
			p.Actions = []Action{Remove{stage, left}}
			return p
		}
	}
	if len(s.Marked) > 0 {
		p.Actions = []Action{UnmarkNodes{s.Marked}}
		return p
	}
	if kv.Status.Phase != v1.KubeVirtPhaseDeleting {
		return p // the certificates' controller stops when it sees the phase
	}
	p.Actions = []Action{RemoveRecords{}, Release{}}
	return p
}

func held(kv *v1.KubeVirt) bool {
	for _, f := range kv.Finalizers {
		if f == Finalizer {
			return true
		}
	}
	return false
}

// Refused returns the plan of a round in which the API server refused what was applied.
func Refused(now time.Time, s Seen, err error) Plan {
	return refuse(now, s, "DeploymentFailed", err.Error())
}

// Unanswered returns the plan of a round in which the API server didn't answer: what is known stands, and it is tried
// again.
func Unanswered(now time.Time, s Seen, why string) Plan {
	if s.KubeVirt.DeletionTimestamp != nil {
		return Plan{Status: status(now, s, retrying(deleting(s), why)), Recheck: now.Add(2 * soon)}
	}
	if undisturbed(s) {
		return Plan{Status: status(now, s, retrying(ready(), why)), Recheck: now.Add(2 * soon)}
	}
	return wait(now, s, why)
}
