package plan

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// Whether a guest has its keys and passwords is a condition, and each change of it one event.
func TestCredentialsAreToldOf(t *testing.T) {
	const kind = v1.VirtualMachineInstanceAccessCredentialsSynchronized
	long := "user \"root\"\n" + strings.Repeat("x\xff", 4096)
	for name, tc := range map[string]struct {
		said   *guestv1.Credentials
		before k8sv1.ConditionStatus
		status k8sv1.ConditionStatus
		event  string
	}{
		"nobody has asked":    {nil, "", "", ""},
		"they are in":         {&guestv1.Credentials{}, "", k8sv1.ConditionTrue, "Normal AccessCredentialsSyncSuccess"},
		"they are still in":   {&guestv1.Credentials{}, k8sv1.ConditionTrue, k8sv1.ConditionTrue, ""},
		"they are in again":   {&guestv1.Credentials{}, k8sv1.ConditionFalse, k8sv1.ConditionTrue, "Normal AccessCredentialsSyncSuccess"},
		"they are not":        {&guestv1.Credentials{Problem: long}, k8sv1.ConditionTrue, k8sv1.ConditionFalse, "Warning AccessCredentialsSyncFailed"},
		"they are not either": {&guestv1.Credentials{Problem: "other"}, k8sv1.ConditionFalse, k8sv1.ConditionFalse, ""},
	} {
		s := Seen{Node: here, Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING), VMI: vmi(v1.Running)}
		s.Guest.Credentials = tc.said
		s.VMI.Spec.AccessCredentials = []v1.AccessCredential{{UserPassword: &v1.UserPasswordAccessCredential{}}}
		if tc.before != "" {
			s.VMI.Status.Conditions = append(s.VMI.Status.Conditions, v1.VirtualMachineInstanceCondition{Type: kind, Status: tc.before})
		}
		p := For(time.Unix(0, 0), s)
		status, message := shown(p.Status, kind)
		if len(message) > maxText || strings.Contains(message, "\n") || !utf8.ValidString(message) {
			t.Errorf("%s: message %q", name, message)
		}
		event := ""
		for _, e := range p.Events {
			event += e.Type + " " + e.Reason
		}
		if status != tc.status || event != tc.event {
			t.Errorf("%s: condition %q, events %q", name, status, event)
		}
	}
}

// shown returns the status and the message of a condition, empty for one that isn't there.
func shown(st *v1.VirtualMachineInstanceStatus, kind v1.VirtualMachineInstanceConditionType) (k8sv1.ConditionStatus, string) {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return c.Status, c.Message
		}
	}
	return "", ""
}
