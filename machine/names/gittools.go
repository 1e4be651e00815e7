package names

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// DeleteProtection is the label, of value "True", of a machine or pool that nobody deletes.
const DeleteProtection = "kubevirt.io/vm-delete-protection"

// gitManagers are the field managers that write what a commit says; names that end in * are prefixes.
var gitManagers = []string{
	"kustomize-controller", "helm-controller", // Flux
	"argocd*",
	Bundles,
}

// gitTools are the tools that mark what they apply with labels <prefix>/name and <prefix>/namespace.
var gitTools = []struct{ manager, kind, prefix string }{
	{"kustomize-controller", "Kustomization", "kustomize.toolkit.fluxcd.io"},
	{"helm-controller", "HelmRelease", "helm.toolkit.fluxcd.io"},
	{Bundles, "Bundle", "bundle.virtstack.io"},
}

const argoTracking, argoInstance = "argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance"

// GitOwner is a Git tool: its field manager, and the object that it applies from, empty if unknown.
type GitOwner struct{ Manager, Source string }

func (o GitOwner) String() string {
	switch {
	case o.Source == "":
		return o.Manager
	case o.Manager == "":
		return o.Source
	}
	return o.Manager + " from " + o.Source
}

// GitManager tells whether a field manager writes what a commit says; others count beside the known, names that end in *
// as prefixes.
func GitManager(manager string, others ...string) bool {
	return slices.ContainsFunc(slices.Concat(gitManagers, others), func(known string) bool {
		prefix, open := strings.CutSuffix(known, "*")
		return manager == known || open && strings.HasPrefix(manager, prefix)
	})
}

// GitSource names the object that the manager applies obj from, out of the marks that the tools leave; "" if there are
// none.
func GitSource(obj metav1.Object, manager string) string {
	labels := obj.GetLabels()
	for _, tool := range gitTools {
		if manager == tool.manager && labels[tool.prefix+"/name"] != "" {
			return marked(obj, tool.kind, tool.prefix)
		}
	}
	if !strings.HasPrefix(manager, "argocd") {
		return ""
	}
	app, _, _ := strings.Cut(obj.GetAnnotations()[argoTracking], ":")
	for _, label := range []string{argoInstance, "app.kubernetes.io/instance"} {
		if app == "" {
			app = labels[label]
		}
	}
	if app == "" {
		return ""
	}
	return "Application " + app
}

func marked(obj metav1.Object, kind, prefix string) string {
	labels := obj.GetLabels()
	return strings.TrimSuffix(fmt.Sprintf("%s %s/%s", kind, labels[prefix+"/namespace"], labels[prefix+"/name"]), "/")
}

// OtherGitOwner returns the Git tool beside the field manager mine that has obj: one that owns fields of it, or whose
// marks it carries. A mark that mine has written itself says nothing, and app.kubernetes.io/instance, which charts set
// as well, says nothing alone.
func OtherGitOwner(obj metav1.Object, mine string) (GitOwner, bool) {
	var own []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		switch {
		case entry.Manager == mine:
			own = append(own, entry)
		case GitManager(entry.Manager) && entry.Subresource == "":
			return GitOwner{entry.Manager, GitSource(obj, entry.Manager)}, true
		}
	}
	for _, tool := range gitTools {
		key := tool.prefix + "/name"
		if tool.manager != mine && obj.GetLabels()[key] != "" && !wrote(own, "labels", key) {
			return GitOwner{Source: marked(obj, tool.kind, tool.prefix)}, true
		}
	}
	if app := obj.GetLabels()[argoInstance]; app != "" && !wrote(own, "labels", argoInstance) {
		return GitOwner{Source: "Application " + app}, true
	}
	if id := obj.GetAnnotations()[argoTracking]; id != "" && !wrote(own, "annotations", argoTracking) {
		app, _, _ := strings.Cut(id, ":")
		return GitOwner{Source: "Application " + app}, true
	}
	return GitOwner{}, false
}

func wrote(entries []metav1.ManagedFieldsEntry, in, key string) bool {
	field := fieldpath.MakePathOrDie("metadata", in, key)
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		owned, err := Owns(e, field)
		return owned && err == nil
	})
}

// Owns tells whether an entry of an object's managed fields has a field; the error is of an entry that can't be read.
func Owns(entry metav1.ManagedFieldsEntry, field fieldpath.Path) (bool, error) {
	if entry.FieldsV1 == nil {
		return false, nil
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return false, err
	}
	return set.Has(field), nil
}
