package plan

import (
	"strings"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/kube/condition"
	"virtstack.io/virtstack/machine/config"
)

// outcome is a row of the contract's table of conditions.
type outcome struct {
	phase      v1.KubeVirtPhase
	conditions []condition.Want
	observed   bool // what runs is the target
}

func row(reason, message string, available, progressing, degraded k8sv1.ConditionStatus) []condition.Want {
	return []condition.Want{
		{Type: "Available", Status: available, Reason: reason, Message: message},
		{Type: "Progressing", Status: progressing, Reason: reason, Message: message},
		{Type: "Degraded", Status: degraded, Reason: reason, Message: message},
	}
}

// on returns the conditions with those by which kstatus judges an object of any kind: Ready=False, and why it is so, which
// is Reconciling (it is on its way by itself) or Stalled (it has stopped).
func on(why string, conditions []condition.Want) []condition.Want {
	reason, message := conditions[0].Reason, conditions[0].Message
	return append(conditions, condition.True(why, reason, message), condition.False(isReady, reason, message))
}

const (
	isReady, reconciling, stalled = "Ready", "Reconciling", "Stalled"

	// ConfigurationIgnored is the condition that names what a KubeVirt asks for and doesn't get.
	ConfigurationIgnored = "ConfigurationIgnored"

	reasonReady = "AllComponentsReady"

	yes, no = k8sv1.ConditionTrue, k8sv1.ConditionFalse
)

func deploying(message string) outcome {
	return outcome{phase: v1.KubeVirtPhaseDeploying, conditions: on(reconciling, row("DeploymentInProgress", message, no, yes, no))}
}

func ready() outcome {
	all := row(reasonReady, "All components are ready.", yes, no, no)
	created := condition.True("Created", "AllResourcesCreated", "All resources were created.")
	return outcome{phase: v1.KubeVirtPhaseDeployed, conditions: append(all, created, condition.True(isReady, all[0].Reason, all[0].Message)), observed: true}
}

// halted is an install that is as it was last asked for, with why what is asked for now isn't begun: it stays available, and
// Degraded and Stalled tell of the commit.
func halted(why string) outcome {
	const reason = "ComponentsRefused"
	o := ready()
	o.conditions = on(stalled, []condition.Want{
		condition.False(string(v1.KubeVirtConditionSynchronized), reason, why),
		o.conditions[0],
		condition.False(string(v1.KubeVirtConditionProgressing), reason, why),
		condition.True(string(v1.KubeVirtConditionDegraded), reason, why),
		condition.True("Created", "AllResourcesCreated", "All resources were created."),
	})
	return o
}

func failed(reason, message string) outcome {
	synchronized := condition.False("Synchronized", reason, message)
	if reason == "ExistingDeployment" {
		return outcome{conditions: on(stalled, []condition.Want{synchronized})}
	}
	return outcome{phase: v1.KubeVirtPhaseDeploying, conditions: on(stalled, append(row(reason, message, no, no, yes), synchronized))}
}

// blocked keeps the phase, and Available as it was: nothing has been taken away, and nothing brought about.
func blocked(st v1.KubeVirtStatus, why string) outcome {
	available := no
	if st.ObservedDeploymentID != "" {
		available = yes
	}
	all := row("DeletionFailed", why, available, no, yes)
	return outcome{phase: phase(st), conditions: on(stalled, append(all, condition.False("Synchronized", "DeletionFailed", why)))}
}

func deleting(s Seen) outcome {
	message := "Removing what was installed."
	if !s.Workloads.none() {
		message = "Removing " + s.Workloads.String() + "."
	}
	return outcome{phase: v1.KubeVirtPhaseDeleting, conditions: on(reconciling, row("DeletionInProgress", message, no, no, yes))}
}

// progress is the row of a roll-out that is under way: the first, an update, or the return of something that broke.
func progress(now time.Time, s Seen, message string, broken bool) outcome {
	st := s.KubeVirt.Status
	if broken || overdue(now, s) {
		o := failed("DeploymentFailed", message)
		o.phase = phase(st)
		return o
	}
	o := deploying(message)
	if st.ObservedDeploymentID != "" && st.ObservedDeploymentID != s.Target.ID {
		o.conditions = on(reconciling, row("UpdateInProgress", message, yes, yes, yes))
	}
	if created(s) {
		o.conditions = append(o.conditions, condition.True("Created", "AllResourcesCreated", "All resources were created."))
	}
	o.phase = phase(st)
	return o
}

// undisturbed tells whether an install was as it should be when last seen.
func undisturbed(s Seen) bool {
	st := s.KubeVirt.Status
	for _, c := range st.Conditions {
		if c.Type == v1.KubeVirtConditionAvailable && c.Reason == reasonReady && st.ObservedDeploymentID == s.Target.ID {
			return true
		}
	}
	return false
}

// retrying adds what keeps the operator from going on.
func retrying(o outcome, why string) outcome {
	o.conditions = append(o.conditions, condition.False(string(v1.KubeVirtConditionSynchronized), "Retrying", why))
	return o
}

func phase(st v1.KubeVirtStatus) v1.KubeVirtPhase {
	if st.ObservedDeploymentID != "" {
		return v1.KubeVirtPhaseDeployed
	}
	return v1.KubeVirtPhaseDeploying
}

// created says that every object of a first roll-out is there and only readiness is waited for.
func created(s Seen) bool {
	if s.KubeVirt.Status.ObservedDeploymentID != "" && s.KubeVirt.Status.ObservedDeploymentID != s.Target.ID {
		return false
	}
	return len(s.Stages) > int(Registrations) && len(s.Stages[Registrations].Changes) == 0
}

// overdue tells whether this roll-out has been under way for longer than Deadline, or has been found so before and is
// still the same.
func overdue(now time.Time, s Seen) bool {
	st := s.KubeVirt.Status
	if st.TargetDeploymentID != s.Target.ID {
		return false
	}
	for _, c := range st.Conditions {
		switch {
		case c.Type == v1.KubeVirtConditionSynchronized && c.Reason == "DeploymentFailed":
			return true
		case c.Type == v1.KubeVirtConditionProgressing && c.Status == yes && now.Sub(c.LastTransitionTime.Time) > Deadline:
			return true
		}
	}
	return false
}

func status(now time.Time, s Seen, o outcome) v1.KubeVirtStatus {
	kv := s.KubeVirt
	if ignored := config.Ignored(kv); len(ignored) > 0 {
		o.conditions = append(o.conditions[:len(o.conditions):len(o.conditions)], condition.True(ConfigurationIgnored, "NotSupported", strings.Join(ignored, "; ")))
	}
	st := v1.KubeVirtStatus{
		Phase:                    o.phase,
		Conditions:               condition.KubeVirt(now, kv.Status.Conditions, o.conditions...),
		OperatorVersion:          s.Target.Version,
		TargetKubeVirtVersion:    s.Target.Version,
		TargetKubeVirtRegistry:   s.Target.Registry,
		TargetDeploymentID:       s.Target.ID,
		TargetDeploymentConfig:   s.Target.Config,
		ObservedKubeVirtVersion:  kv.Status.ObservedKubeVirtVersion,
		ObservedKubeVirtRegistry: kv.Status.ObservedKubeVirtRegistry,
		ObservedDeploymentID:     kv.Status.ObservedDeploymentID,
		ObservedDeploymentConfig: kv.Status.ObservedDeploymentConfig,
		ObservedGeneration:       new(kv.Generation),
	}
	if o.observed {
		st.ObservedKubeVirtVersion, st.ObservedKubeVirtRegistry = s.Target.Version, s.Target.Registry
		st.ObservedDeploymentID, st.ObservedDeploymentConfig = s.Target.ID, s.Target.Config
	}
	return st
}
