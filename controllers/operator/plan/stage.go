// Package plan decides what the operator does for a KubeVirt CR. It is pure.
package plan

// Stage is one step of a roll-out. Each is applied when the ones before it are ready, and removed when the ones after
// it are gone.
type Stage int

// The stages, in order: node agents before the controllers that hand work to them, and nothing that the API server
// calls before its server answers.
const (
	Configuration Stage = iota // accounts, roles, policies, services
	NodeAgents
	Controllers
	API
	Registrations // API services and webhooks
	stages
)

// Stages are all of them.
func Stages() []Stage {
	all := make([]Stage, stages)
	for i := range all {
		all[i] = Stage(i)
	}
	return all
}

func (s Stage) String() string {
	return [...]string{"accounts, roles and policies", "virt-handler", "virt-controller", "virt-api", "API services and webhooks"}[s]
}

// StageOf returns the stage of an object of the component bundle.
func StageOf(kind, name string) Stage {
	switch kind {
	case "DaemonSet":
		return NodeAgents
	case "Deployment":
		if name == "virt-api" {
			return API
		}
		return Controllers
	case "APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return Registrations
	}
	return Configuration
}
