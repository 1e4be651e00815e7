package names_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/machine/names"
)

type pairs = map[string]string

func TestOtherGitOwner(t *testing.T) {
	by := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for name, tc := range map[string]struct {
		labels, annotations pairs
		managed             []metav1.ManagedFieldsEntry
		want                string // "": nobody
	}{
		"nobody": {},
		"a Kustomization": {
			labels:  pairs{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
			managed: []metav1.ManagedFieldsEntry{by("kustomize-controller", "", `{}`)}, want: "kustomize-controller from Kustomization flux-system/apps",
		},
		"its marks alone":                {labels: pairs{"kustomize.toolkit.fluxcd.io/name": "apps"}, want: "Kustomization /apps"},
		"its fields alone":               {managed: []metav1.ManagedFieldsEntry{by("kustomize-controller", "", `{}`)}, want: "kustomize-controller"},
		"its status alone":               {managed: []metav1.ManagedFieldsEntry{by("kustomize-controller", "status", `{}`)}},
		"a HelmRelease":                  {labels: pairs{"helm.toolkit.fluxcd.io/name": "db", "helm.toolkit.fluxcd.io/namespace": "n"}, want: "HelmRelease n/db"},
		"an Application, by annotation":  {annotations: pairs{"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:n/a"}, want: "Application shop"},
		"an Application, by label":       {labels: pairs{"argocd.argoproj.io/instance": "shop"}, want: "Application shop"},
		"an Application, by its fields":  {managed: []metav1.ManagedFieldsEntry{by("argocd-controller", "", `{}`)}, want: "argocd-controller"},
		"a chart's label":                {labels: pairs{"app.kubernetes.io/instance": "shop"}},
		"a person":                       {managed: []metav1.ManagedFieldsEntry{by("kubectl", "", `{}`)}},
		"ourselves":                      {labels: pairs{"bundle.virtstack.io/name": "b"}, managed: []metav1.ManagedFieldsEntry{by("virt-bundles", "", `{}`)}},
		"a mark that we wrote ourselves": {labels: pairs{"argocd.argoproj.io/instance": "shop"}, managed: []metav1.ManagedFieldsEntry{by("virt-bundles", "", `{"f:metadata":{"f:labels":{"f:argocd.argoproj.io/instance":{}}}}`)}},
	} {
		o := &metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations, ManagedFields: tc.managed}
		got, owned := names.OtherGitOwner(o, "virt-bundles")
		if owned != (tc.want != "") || got.String() != tc.want {
			t.Errorf("%s: got %q %v, want %q", name, got, owned, tc.want)
		}
	}
}
