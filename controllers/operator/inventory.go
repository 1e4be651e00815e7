package operator

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/release"
	"virtstack.io/virtstack/machine/names"
)

const (
	inventoryName = "kubevirt-inventory"
	inventoryKey  = "objects"
)

// inventory reads what has been installed, nothing if that was never recorded. A line is <id> <version>.
func (c *Controller) inventory(ctx context.Context) ([]release.Ref, error) {
	var m corev1.ConfigMap
	err := c.live.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: inventoryName}, &m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the inventory: %w", err)
	}
	var refs []release.Ref
	for line := range strings.Lines(m.Data[inventoryKey]) {
		id, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		ref, err := release.ParseRef(id, version)
		if err != nil {
			return nil, fmt.Errorf("reading the inventory: %w", err)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

func (c *Controller) record(ctx context.Context, refs []release.Ref) error {
	var lines strings.Builder
	for _, r := range release.Sorted(refs) {
		fmt.Fprintf(&lines, "%s %s\n", r.ID(), r.Version)
	}
	m := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: inventoryName, Labels: managed()},
		Data:       map[string]string{inventoryKey: lines.String()},
	}
	if err := applyWhole(ctx, c.client, m); err != nil {
		return fmt.Errorf("recording the inventory: %w", err)
	}
	return nil
}

func managed() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "virt-operator", "kubevirt.io": ""}
}
