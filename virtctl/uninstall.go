package virtctl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
)

func uninstallCommand(e *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Clear away what is left of an install whose operator is gone",
		Long: "Clear away what is left of an install whose operator is gone, so that everything that is being deleted can go: what\n" +
			"the API server asks of servers that are away, cluster-wide rights and classes, and the finalizers of KubeVirts and\n" +
			"machines that are being deleted already. Where the operator runs, or a KubeVirt isn't being deleted, it changes\n" +
			"nothing and says what does it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := e.client()
			if err != nil {
				return err
			}
			return e.uninstall(cmd.Context(), c)
		},
	}
}

// installed are the collections of what the operator makes outside of its namespace. What refuses deletions goes first.
var installed = []string{
	"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
	"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
	"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
	"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
	"/apis/apiregistration.k8s.io/v1/apiservices",
	"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	"/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"/apis/scheduling.k8s.io/v1/priorityclasses",
}

// held are the kinds that wait for a component when they are deleted.
var held = []string{"virtualmachineinstances", "virtualmachines", "kubevirts"}

const kubevirtAPI = "/apis/kubevirt.io/v1/"

func (e *environment) uninstall(ctx context.Context, c *client) error {
	if err := c.abandoned(ctx); err != nil {
		return err
	}
	cleared := 0
	for _, collection := range installed {
		all, err := c.metadata(ctx, collection, "app.kubernetes.io/managed-by="+names.Operator)
		if err != nil {
			return err
		}
		for _, o := range all {
			err := c.rest.Delete().AbsPath(collection, o.Name).Do(ctx).Error()
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("deleting %s %s: %w", last(collection), o.Name, err)
			}
			cleared += e.tell("deleted", collection, o)
		}
	}
	for _, kind := range held {
		all, err := c.metadata(ctx, kubevirtAPI+kind, "")
		if err != nil {
			return err
		}
		for _, o := range all {
			if o.DeletionTimestamp == nil || len(o.Finalizers) == 0 {
				continue
			}
			if err := c.letGo(ctx, kind, o); err != nil {
				return fmt.Errorf("letting go of %s %s/%s: %w", kind, o.Namespace, o.Name, err)
			}
			cleared += e.tell("let go", kind, o)
		}
	}
	after := "The rest goes with its namespace:\n  kubectl delete namespace " + names.Namespace
	if cleared == 0 {
		after = "Nothing is in the way of a deletion."
	}
	_, err := fmt.Fprintln(e.Out, after)
	return err
}

// tell prints what was done to an object.
func (e *environment) tell(done, collection string, o metav1.PartialObjectMetadata) int {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	_, _ = fmt.Fprintf(e.Out, "%s: %s %s\n", done, last(collection), name)
	return 1
}

func last(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// abandoned returns what to do in place of clearing up, nil where nobody else does it.
func (c *client) abandoned(ctx context.Context) error {
	all, err := c.metadata(ctx, kubevirtAPI+"kubevirts", "")
	if err != nil {
		return err
	}
	for _, kv := range all {
		if kv.DeletionTimestamp == nil {
			return hinted(nil, "KubeVirt %s/%s is not being deleted. First:\n  kubectl delete kubevirt -n %[1]s %[2]s --wait=false", kv.Namespace, kv.Name)
		}
	}
	if err := c.wanted(ctx); err != nil {
		return err
	}
	operator := appsv1.Deployment{}
	err = c.get(ctx, &operator, "/apis/apps/v1/namespaces", names.Namespace, "deployments", names.Operator)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil && operator.Status.AvailableReplicas > 0 && operator.DeletionTimestamp == nil && len(all) > 0 {
		return hinted(nil, "The operator runs and removes what it installed. What it waits for:\n  kubectl get kubevirt -n %s %s -o jsonpath='{.status.conditions[0].message}'",
			all[0].Namespace, all[0].Name)
	}
	return nil
}

// wanted returns what to do about machines that nobody has deleted, nil where there are none.
func (c *client) wanted(ctx context.Context) error {
	for _, kind := range held[:2] {
		all, err := c.metadata(ctx, kubevirtAPI+kind, "")
		if err != nil {
			return err
		}
		for _, o := range all {
			if o.DeletionTimestamp == nil {
				return hinted(nil, "%s %s/%s is not being deleted, one of %d at most. First:\n  kubectl delete %[1]s --all --all-namespaces --wait=false", kind, o.Namespace, o.Name, len(all))
			}
		}
	}
	return nil
}

// metadata lists the objects of a collection, none where its kind isn't there.
func (c *client) metadata(ctx context.Context, collection, labels string) ([]metav1.PartialObjectMetadata, error) {
	raw, err := c.rest.Get().AbsPath(collection).Param("labelSelector", labels).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", last(collection), err)
	}
	list := metav1.PartialObjectMetadataList{}
	return list.Items, json.Unmarshal(raw, &list)
}

// letGo takes the finalizers off an object that is being deleted, as it was seen.
func (c *client) letGo(ctx context.Context, kind string, o metav1.PartialObjectMetadata) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": nil, "resourceVersion": o.ResourceVersion, "uid": o.UID}})
	if err != nil {
		return err
	}
	// For a moment the API server still asks a webhook that was deleted just now.
	err = retry.OnError(retry.DefaultBackoff, apierrors.IsInternalError, func() error {
		return c.rest.Patch(types.MergePatchType).AbsPath(path("/apis/"+v1.GroupVersion.String(), o.Namespace, kind, o.Name)...).Body(patch).Do(ctx).Error()
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
