package plan

import (
	"slices"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/kube/condition"
)

// Reasons of events and of the condition; source of the events: contract of KubeVirt.
const (
	credentialsIn     = "AccessCredentialsSyncSuccess"
	credentialsFailed = "AccessCredentialsSyncFailed"
)

// credentials tells whether the guest has the keys and passwords that go by its agent; nothing, where none do, or none
// was tried.
func credentials(s Seen) []condition.Want {
	said, kind := s.Guest.GetCredentials(), string(v1.VirtualMachineInstanceAccessCredentialsSynchronized)
	switch {
	case said == nil || len(s.VMI.Spec.AccessCredentials) == 0:
		return nil
	case said.GetProblem() == "":
		return []condition.Want{condition.True(kind, credentialsIn, "")}
	}
	return []condition.Want{condition.False(kind, credentialsFailed, text(said.GetProblem()))}
}

// tellCredentials is the event of a change from what the VMI's status says to what it is to say.
func tellCredentials(have, next []v1.VirtualMachineInstanceCondition) []Event {
	is := func(c v1.VirtualMachineInstanceCondition) bool {
		return c.Type == v1.VirtualMachineInstanceAccessCredentialsSynchronized
	}
	was, now := slices.IndexFunc(have, is), slices.IndexFunc(next, is)
	if now < 0 || was >= 0 && have[was].Status == next[now].Status {
		return nil
	}
	if next[now].Status == k8sv1.ConditionTrue {
		return []Event{{k8sv1.EventTypeNormal, credentialsIn, "The guest has its keys and passwords."}}
	}
	return []Event{{k8sv1.EventTypeWarning, credentialsFailed, next[now].Message}}
}
