// Package plan decides what the operator does for a KubeVirt CR. It is pure.
package plan

import (
	"fmt"
	"slices"
)

// Stage is one step of a roll-out. Each is applied when the ones before it are ready, and removed when the ones after
// it are gone.
type Stage int

// The stages, in order: node agents before the controllers that hand work to them, and nothing that the API server
// calls before its server answers. Whichever version is rolled to from whichever other, while programs of both run
// neither lacks a right, and no webhook is asked that either doesn't serve.
const (
	Configuration Stage = iota // accounts, roles, policies, services; a role keeps what it grants already
	NodeAgents
	Controllers
	Withdrawals // webhooks that virt-api is about to serve no longer
	API
	Registrations // API services and webhooks
	Rights        // roles grant what is wanted and no more
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
	return [...]string{
		"accounts, roles and policies", "virt-handler", "virt-controller", "webhooks that are no longer served", "virt-api",
		"API services and webhooks", "rights that are no longer needed",
	}[s]
}

// workloads are the programs without which an install is none.
var workloads = []string{"DaemonSet virt-handler", "Deployment virt-controller", "Deployment virt-api"}

// Incomplete says which workload is missing from a component bundle, given its objects as "<kind> <name>"; "" for none.
// What isn't there would be pruned.
func Incomplete(objects []string) string {
	for _, w := range workloads {
		if !slices.Contains(objects, w) {
			return fmt.Sprintf("it has no %s among its %d objects: it must build to all that bundles/components does", w, len(objects))
		}
	}
	return ""
}

// StageOf returns the stage that brings an object of the component bundle.
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
