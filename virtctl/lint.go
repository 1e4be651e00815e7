package virtctl

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/gitops/policy"
	"virtstack.io/virtstack/policies"
)

func lintCommand(e *environment) *cobra.Command {
	var from sources
	as := ""
	cmd := &cobra.Command{
		Use:   "lint (-f FILE | -k DIR)...",
		Short: "Tell whether policies of admission would let manifests pass, without asking a cluster",
		Long: "Tell whether policies of admission would let manifests pass, without asking a cluster: their CEL expressions are\n" +
			"run by the API server's own code. The policies are all of this release's, or those of --policies; their parameters\n" +
			"are the ConfigMaps that come with them, or those of the same name among the manifests.\n\n" +
			"Exit codes: 0 all would pass, 1 something would be refused, 2 wrong usage or a file that can't be read.",
	}
	e.judges(cmd, func(ctx context.Context, manifests []manifest) (report, error) {
		set, err := policiesOf(ctx, from, manifests)
		if err != nil {
			return report{}, exit{usage, err}
		}
		return lint(ctx, manifests, set, asker{cmp.Or(*e.connection.Namespace, "default"), as})
	})
	cmd.Flags().StringArrayVar(&from.kustomizations, "policies", nil, "directory with a kustomization of policies, bindings and parameters, instead of this release's; may be repeated")
	cmd.Flags().StringVar(&as, "as-user", "kubernetes-admin", "name of the user who would apply the manifests, for policies that let some through")
	return cmd
}

// policiesOf reads the policies to lint by. Parameters among the manifests win over those that come with the policies.
func policiesOf(ctx context.Context, from sources, manifests []manifest) (*policy.Set, error) {
	var all []*unstructured.Unstructured
	given := map[string]bool{}
	for _, m := range manifests {
		if m.err == nil && m.object.GetKind() == "ConfigMap" {
			all = append(all, m.object)
			given[m.String()] = true
		}
	}
	packed, err := packOf(ctx, from)
	if err != nil {
		return nil, err
	}
	for _, o := range packed {
		if !given[manifest{object: o}.String()] {
			all = append(all, o)
		}
	}
	set, err := policy.Read(all)
	if err == nil && set.Len() == 0 {
		err = fmt.Errorf("--policies %v: there is no ValidatingAdmissionPolicyBinding", from.kustomizations)
	}
	return set, err
}

func packOf(ctx context.Context, from sources) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	if len(from.kustomizations) == 0 {
		built, err := build.Objects(ctx, policies.Files, "", build.DefaultLimits)
		for _, o := range built {
			all = append(all, o.Unstructured)
		}
		return all, err
	}
	read, err := from.read(ctx, nil)
	for _, m := range read {
		if m.err != nil {
			return nil, m.err
		}
		all = append(all, m.object)
	}
	return all, err
}

// asker is who would apply manifests, and the namespace of those that have none.
type asker struct{ namespace, user string }

// sent returns an object as the API server has it when it asks the policies. Of one without a namespace it isn't known
// whether its kind has any; it is judged as one in the asker's.
func (a asker) sent(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetCreationTimestamp(metav1.Now())
	if o.GetNamespace() == "" && o.GetKind() != "Namespace" {
		o.SetNamespace(a.namespace)
	}
	return o
}

// lint judges manifests as ones that are to be made.
func lint(ctx context.Context, manifests []manifest, set *policy.Set, by asker) (report, error) {
	r := report{Findings: []finding{}}
	namespaces := namespacesOf(manifests)
	for _, m := range manifests {
		if m.err != nil {
			r.Findings = append(r.Findings, finding{File: m.file, Line: m.line, Message: m.err.Error()})
			continue
		}
		r.Objects++
		o := by.sent(m.object)
		found, err := set.Judge(ctx, policy.Request{Object: o, User: by.user, Namespace: namespaces[o.GetNamespace()]})
		if err != nil {
			return r, err
		}
		for _, f := range found {
			r.Findings = append(r.Findings, finding{File: m.file, Line: m.line, Object: m.String(), Message: f.Policy + ": " + f.Message, Warning: f.Warning})
		}
	}
	return r, nil
}

// namespacesOf are the Namespaces among the manifests, by name.
func namespacesOf(manifests []manifest) map[string]*corev1.Namespace {
	found := map[string]*corev1.Namespace{}
	for _, m := range manifests {
		if m.err != nil || m.object.GetKind() != "Namespace" {
			continue
		}
		ns := &corev1.Namespace{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(m.object.Object, ns) == nil {
			found[ns.Name] = ns
		}
	}
	return found
}
