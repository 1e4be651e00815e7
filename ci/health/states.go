package health

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// State is a state of a kind, with an object in it in testdata/<Kind>/<Name>.yaml.
type State struct {
	Kind, Name string
	// Passing: it ends by itself, or at a deadline.
	Passing bool
	// Live: the object is one of the dev cluster's.
	Live bool
}

// States are all that docs/gitops/health.md speaks of, in its order.
var States = []State{
	{Kind: "VirtualMachine", Name: "new", Passing: true},
	{Kind: "VirtualMachine", Name: "starting", Passing: true, Live: true},
	{Kind: "VirtualMachine", Name: "running", Live: true},
	{Kind: "VirtualMachine", Name: "halted"},
	{Kind: "VirtualMachine", Name: "manual-never-started", Live: true},
	{Kind: "VirtualMachine", Name: "shut-down-by-its-guest"},
	{Kind: "VirtualMachine", Name: "stopping", Passing: true},
	{Kind: "VirtualMachine", Name: "paused"},
	{Kind: "VirtualMachine", Name: "migrating"},
	{Kind: "VirtualMachine", Name: "restart-required"},
	{Kind: "VirtualMachine", Name: "unschedulable", Passing: true, Live: true},
	{Kind: "VirtualMachine", Name: "unschedulable-past-its-deadline"},
	{Kind: "VirtualMachine", Name: "image-pull-error", Passing: true, Live: true},
	{Kind: "VirtualMachine", Name: "image-pull-error-past-its-deadline"},
	{Kind: "VirtualMachine", Name: "first-failed-start", Passing: true, Live: true},
	{Kind: "VirtualMachine", Name: "crash-loop"},
	{Kind: "VirtualMachine", Name: "one-start-and-it-failed", Live: true},
	{Kind: "VirtualMachine", Name: "not-ready-past-its-deadline"},
	{Kind: "VirtualMachine", Name: "terminating", Passing: true},

	{Kind: "VirtualMachineInstance", Name: "new", Passing: true},
	{Kind: "VirtualMachineInstance", Name: "starting", Passing: true, Live: true},
	{Kind: "VirtualMachineInstance", Name: "running", Live: true},
	{Kind: "VirtualMachineInstance", Name: "paused"},
	{Kind: "VirtualMachineInstance", Name: "unschedulable", Live: true},
	{Kind: "VirtualMachineInstance", Name: "image-pull-error", Live: true},
	{Kind: "VirtualMachineInstance", Name: "not-ready"},
	{Kind: "VirtualMachineInstance", Name: "succeeded"},
	{Kind: "VirtualMachineInstance", Name: "failed", Live: true},
	{Kind: "VirtualMachineInstance", Name: "terminating", Passing: true},

	{Kind: "VirtualMachinePool", Name: "scaling", Passing: true},
	{Kind: "VirtualMachinePool", Name: "ready"},
	{Kind: "VirtualMachinePool", Name: "halted"},
	{Kind: "VirtualMachinePool", Name: "paused"},
	{Kind: "VirtualMachinePool", Name: "cannot-make-its-replicas"},
	{Kind: "VirtualMachinePool", Name: "stalled"},

	{Kind: "VirtualMachineInstanceReplicaSet", Name: "scaling", Passing: true},
	{Kind: "VirtualMachineInstanceReplicaSet", Name: "ready"},
	{Kind: "VirtualMachineInstanceReplicaSet", Name: "paused"},
	{Kind: "VirtualMachineInstanceReplicaSet", Name: "cannot-make-its-replicas"},

	{Kind: "VirtualMachineInstanceMigration", Name: "new", Passing: true},
	{Kind: "VirtualMachineInstanceMigration", Name: "pending", Passing: true},
	{Kind: "VirtualMachineInstanceMigration", Name: "running", Passing: true},
	{Kind: "VirtualMachineInstanceMigration", Name: "succeeded"},
	{Kind: "VirtualMachineInstanceMigration", Name: "failed"},

	{Kind: "VirtualMachineSnapshot", Name: "waiting-for-its-source", Passing: true},
	{Kind: "VirtualMachineSnapshot", Name: "in-progress", Passing: true},
	{Kind: "VirtualMachineSnapshot", Name: "ready"},
	{Kind: "VirtualMachineSnapshot", Name: "failed"},

	{Kind: "VirtualMachineRestore", Name: "in-progress", Passing: true},
	{Kind: "VirtualMachineRestore", Name: "complete"},
	{Kind: "VirtualMachineRestore", Name: "failed"},

	{Kind: "VirtualMachineClone", Name: "waiting-for-its-source", Passing: true},
	{Kind: "VirtualMachineClone", Name: "in-progress", Passing: true},
	{Kind: "VirtualMachineClone", Name: "succeeded"},
	{Kind: "VirtualMachineClone", Name: "failed"},

	{Kind: "VirtualMachineExport", Name: "pending", Passing: true},
	{Kind: "VirtualMachineExport", Name: "in-use", Passing: true},
	{Kind: "VirtualMachineExport", Name: "ready"},
	{Kind: "VirtualMachineExport", Name: "terminated"},

	{Kind: "Bundle", Name: "new", Passing: true},
	{Kind: "Bundle", Name: "reconciling", Passing: true},
	{Kind: "Bundle", Name: "ready", Live: true},
	{Kind: "Bundle", Name: "failed-build", Live: true},
	{Kind: "Bundle", Name: "suspended", Live: true},

	{Kind: "KubeVirt", Name: "new", Passing: true},
	{Kind: "KubeVirt", Name: "deploying", Passing: true},
	{Kind: "KubeVirt", Name: "deployed", Live: true},
	{Kind: "KubeVirt", Name: "updating", Passing: true},
	{Kind: "KubeVirt", Name: "failed"},
	{Kind: "KubeVirt", Name: "second"},
	{Kind: "KubeVirt", Name: "deleting", Passing: true},
}

// File is where the object is, from the root of the repository.
func (s State) File() string { return "ci/health/testdata/" + s.Kind + "/" + s.Name + ".yaml" }

// Sample returns the object.
func (s State) Sample(root fs.FS) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	raw, err := fs.ReadFile(root, s.File())
	if err == nil {
		raw, err = yaml.YAMLToJSON(raw)
	}
	if err == nil {
		err = u.UnmarshalJSON(raw)
	}
	if err == nil && u.GetKind() != s.Kind {
		err = fmt.Errorf("it is a %s", u.GetKind())
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.File(), err)
	}
	return u, nil
}

// telling are the conditions by which one state of an object is known from another.
var telling = []string{
	"Ready", "Paused", "Stalled", "Reconciling", "RestartRequired", "PodScheduled", "Synchronized", "Available", "Progressing", "Degraded",
}

// Sign is what two objects in one state have in common: a word, and conditions.
func Sign(u *unstructured.Unstructured) string {
	if u.GetDeletionTimestamp() != nil {
		return "deleting"
	}
	word, _, _ := unstructured.NestedString(u.Object, "status", "printableStatus")
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	suspend, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	signs := []string{}
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if kind, _ := c["type"].(string); slices.Contains(telling, kind) {
			signs = append(signs, fmt.Sprintf("%s=%v", kind, c["status"]))
		}
	}
	slices.Sort(signs)
	word = strings.Replace(word, "ImagePullBackOff", "ErrImagePull", 1) // they take turns
	phase = strings.Replace(phase, "Scheduled", "Scheduling", 1)        // the shorter one isn't always told of
	return strings.TrimSpace(fmt.Sprintf("%s%s suspend=%t %s", word, phase, suspend, strings.Join(signs, " ")))
}
