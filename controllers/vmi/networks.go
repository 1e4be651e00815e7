package vmi

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/podspec"
)

// definitions are the networks that Multus, or what takes its place, knows; a cluster may have neither.
var definitions = schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}

// networkResource is the annotation of a definition with the device resource that each attachment takes.
const networkResource = "k8s.v1.cni.cncf.io/resourceName"

// networkResources returns, sorted, the resource for each of the VMI's networks that takes one, as often as it is
// taken. A definition that isn't there takes none: attaching it fails later, on the node, by its name.
func networkResources(ctx context.Context, live client.Reader, vmi *v1.VirtualMachineInstance) ([]string, error) {
	var taken []string
	for _, n := range podspec.Attachments(vmi) {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(definitions)
		err := live.Get(ctx, n, found)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading NetworkAttachmentDefinition %s: %w", n, err)
		}
		if name := found.Annotations[networkResource]; name != "" {
			taken = append(taken, name)
		}
	}
	slices.Sort(taken)
	return taken, nil
}
