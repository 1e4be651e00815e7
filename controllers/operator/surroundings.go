package operator

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/bundles"
	"virtstack.io/virtstack/controllers/operator/plan"
	"virtstack.io/virtstack/machine/names"
	product "virtstack.io/virtstack/machine/release"
)

// workloadKind is a kind that keeps an install from being removed.
type workloadKind string

var workloadKinds = []workloadKind{"VirtualMachine", "VirtualMachineInstance"}

func (k workloadKind) list() *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(v1.GroupVersion.WithKind(string(k) + "List"))
	return l
}

// count returns how many objects of list's kind the API server has; list gets the first.
func count(ctx context.Context, live client.Reader, list *metav1.PartialObjectMetadataList) (int, error) {
	if err := live.List(ctx, list, client.Limit(1)); err != nil {
		return 0, err
	}
	n := len(list.Items)
	if list.RemainingItemCount != nil {
		n += int(*list.RemainingItemCount)
	}
	return n, nil
}

// absent tells whether a kind's objects couldn't be listed because its CRD is gone, and so are they: somebody may remove
// the CRDs before the install.
func (k workloadKind) absent(ctx context.Context, live client.Reader, listing error) bool {
	if !apimeta.IsNoMatchError(listing) && !apierrors.IsNotFound(listing) {
		return false
	}
	var crd metav1.PartialObjectMetadata
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return apierrors.IsNotFound(live.Get(ctx, client.ObjectKey{Name: strings.ToLower(string(k)) + "s.kubevirt.io"}, &crd))
}

// workloads counts VMs and VMIs on the API server itself.
func workloads(ctx context.Context, live client.Reader) (plan.Workloads, error) {
	var w plan.Workloads
	for _, kind := range workloadKinds {
		list := kind.list()
		n, err := count(ctx, live, list)
		if kind.absent(ctx, live, err) {
			continue
		}
		if err != nil {
			return w, fmt.Errorf("counting %ss: %w", kind, err)
		}
		if n > 0 && w.Example == "" {
			w.Example = list.Items[0].Namespace + "/" + list.Items[0].Name
		}
		if kind == "VirtualMachine" {
			w.VMs = n
		} else {
			w.VMIs = n
		}
	}
	return w, nil
}

// foreign looks for another KubeVirt, until this one has been installed.
func (c *Controller) foreign(ctx context.Context, kv *v1.KubeVirt) (string, error) {
	if kv.Status.ObservedDeploymentID != "" {
		return "", nil
	}
	var operators metav1.PartialObjectMetadataList
	operators.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	if err := c.live.List(ctx, &operators, client.MatchingLabels{"kubevirt.io": names.Operator}); err != nil {
		return "", fmt.Errorf("looking for other operators: %w", err)
	}
	for _, d := range operators.Items {
		if d.Namespace != names.Namespace {
			return "Deployment " + d.Namespace + "/" + d.Name, nil
		}
	}
	var strategies metav1.PartialObjectMetadataList
	strategies.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := c.live.List(ctx, &strategies, client.InNamespace(names.Namespace), client.HasLabels{"kubevirt.io/install-strategy"})
	if err != nil {
		return "", fmt.Errorf("looking for install strategies: %w", err)
	}
	for _, m := range strategies.Items {
		return "ConfigMap " + m.Namespace + "/" + m.Name, nil
	}
	return "", nil
}

// watched are the kinds without which a component doesn't start.
var watched = []string{
	"kubevirts.kubevirt.io", "virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io",
	"virtualmachineinstancemigrations.kubevirt.io", "virtualmachineinstancetypes.instancetype.kubevirt.io", "bundles.virtstack.io",
}

// kinds returns what is wrong with the CRDs. All come with the operator's manifests, none from the operator.
func (c *Controller) kinds(ctx context.Context) ([]string, error) {
	all, err := fs.Glob(bundles.Definitions(), "*.*.*.yaml")
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, file := range all {
		why, err := c.kind(ctx, strings.TrimSuffix(file, ".yaml"))
		if err != nil {
			return nil, err
		}
		if why != "" {
			wrong = append(wrong, why)
		}
	}
	return wrong, nil
}

// kind returns what is wrong with one CRD, "" for nothing. Most are large, so that of many only the metadata is read.
func (c *Controller) kind(ctx context.Context, name string) (string, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	var has metav1.PartialObjectMetadata
	has.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	whole := slices.Contains(watched, name)
	var o client.Object = &has
	if whole {
		o = &crd
	}
	err := c.live.Get(ctx, client.ObjectKey{Name: name}, o)
	switch {
	case apierrors.IsNotFound(err):
		return name + " is missing", nil
	case err != nil:
		return "", fmt.Errorf("reading CRD %s: %w", name, err)
	case name == "virtualmachineinstances.kubevirt.io" && !statusApart(crd):
		return name + " is another product's: it has no /status", nil
	case whole && !served(crd):
		return name + " is not served yet", nil
	}
	if older := plan.Older(o.GetLabels()[names.Release], product.Version); older != "" {
		return name + " " + older, nil
	}
	return "", nil
}

func served(crd apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

func statusApart(crd apiextensionsv1.CustomResourceDefinition) bool {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Subresources != nil && v.Subresources.Status != nil
		}
	}
	return false
}
