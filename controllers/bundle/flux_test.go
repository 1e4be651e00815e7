package bundle

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

// serveFluxKind makes the API server have GitRepositories, as Flux's own definition does in what matters here.
func (x *tenant) serveFluxKind() {
	x.t.Helper()
	keep := true
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gitrepositories.source.toolkit.fluxcd.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "source.toolkit.fluxcd.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gitrepositories", Singular: "gitrepository", Kind: "GitRepository", ListKind: "GitRepositoryList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": open, "status": open}}},
			}},
		},
	}
	if err := x.Client.Create(x.t.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
		x.t.Fatal(err)
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(fluxSources.WithKind("GitRepositoryList"))
	x.within("the kind is served", func() bool { return x.Client.List(x.t.Context(), &list) == nil })
}

func (x *tenant) within(what string, done func() bool) {
	x.t.Helper()
	ask := func(context.Context) (bool, error) { return done(), nil }
	if err := wait.PollUntilContextTimeout(x.t.Context(), 200*time.Millisecond, 30*time.Second, true, ask); err != nil {
		x.t.Fatalf("not in time: %s: %v", what, err)
	}
}

// publish gives a source, which it makes if need be, an artifact that is served.
func (x *tenant) publish(namespace, revision, value string) *unstructured.Unstructured {
	x.t.Helper()
	archive := sourcetest.Archive(x.t, sourcetest.File("a.yaml", settings("a", value)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	x.t.Cleanup(s.Close)
	o := fluxSource(v1alpha1.GitRepository)
	o.SetNamespace(namespace)
	o.SetName("vms")
	if err := x.Client.Create(x.t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		x.t.Fatal(err)
	}
	x.artifact(o, map[string]any{"url": s.URL + "/a.tar.gz", "revision": revision, "digest": fmt.Sprintf("sha256:%x", sha256.Sum256(archive))})
	return o
}

func (x *tenant) artifact(o *unstructured.Unstructured, artifact map[string]any) {
	x.t.Helper()
	if err := x.Client.Get(x.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		x.t.Fatal(err)
	}
	o.Object["status"] = map[string]any{"artifact": artifact, "conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "cloning"}}}
	if err := x.Client.Status().Update(x.t.Context(), o); err != nil {
		x.t.Fatal(err)
	}
	x.now = x.now.Add(10 * time.Minute)
}

// reads lets the tenant's account get sources in a namespace.
func (x *tenant) reads(namespace string) {
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sources"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"gitrepositories"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "sources"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: x.namespace, Name: "deployer"}},
	}
	x.create(role)
	x.create(binding)
}

func TestASourceOfFlux(t *testing.T) {
	x := start(t)
	x.serveFluxKind()
	x.bundle.Spec.Source = v1alpha1.BundleSource{SourceRef: &v1alpha1.SourceReference{Kind: v1alpha1.Bucket, Name: "vms"}}
	x.create(x.bundle)
	x.failed(x.settle(), "FetchFailed", "spec.source.sourceRef: reading Bucket "+x.namespace+"/vms", "the cluster has no such kind", "comes with Flux")
	x.change(func(s *v1alpha1.BundleSpec) { s.Source.SourceRef.Kind = v1alpha1.GitRepository })
	x.failed(x.settle(), "FetchFailed", "GitRepository "+x.namespace+"/vms as account deployer", "forbidden")
	x.reads(x.namespace)
	x.now = x.now.Add(10 * time.Minute)
	x.failed(x.settle(), "FetchFailed", "not found")
	o := x.publish(x.namespace, "main@sha1:one", "one")
	x.ready(x.settle(), "main@sha1:one")
	x.stands("one")

	x.artifact(o, nil)
	x.failed(x.settle(), "FetchFailed", "GitRepository "+x.namespace+"/vms has no artifact yet: cloning")
	x.artifact(o, map[string]any{"url": "http://127.0.0.1:1/a", "revision": "main@sha1:two", "digest": "sha256:" + strings.Repeat("0", 64)})
	x.failed(x.settle(), "FetchFailed", "main@sha1:two", "connection refused")
	x.publish(x.namespace, "main@sha1:three", "three")
	if err := x.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	artifact := o.Object["status"].(map[string]any)["artifact"].(map[string]any)
	good := artifact["digest"]
	artifact["digest"] = "sha256:" + strings.Repeat("0", 64)
	x.artifact(o, artifact)
	b := x.settle()
	x.failed(b, "FetchFailed", "main@sha1:three", "its digest is "+good.(string)+" and not")
	x.stands("one")
	if b.Status.LastAppliedRevision != "main@sha1:one" {
		t.Errorf("applied is %s", b.Status.LastAppliedRevision)
	}
	artifact["digest"] = good
	x.artifact(o, artifact)
	x.ready(x.settle(), "main@sha1:three")
	x.stands("three")
}

// G8: a source of another namespace is refused, whatever the account may read; with the flag the account's rights count.
func TestASourceOfAnotherNamespace(t *testing.T) {
	x := start(t)
	x.serveFluxKind()
	other := x.Env.Namespace(t)
	x.reads(other)
	x.publish(other, "main@sha1:one", "one")
	x.bundle.Spec.Source = v1alpha1.BundleSource{SourceRef: &v1alpha1.SourceReference{Kind: v1alpha1.GitRepository, Name: "vms", Namespace: other}}
	x.create(x.bundle)
	x.failed(x.settle(), "FetchFailed", "spec.source.sourceRef.namespace", other+"/vms", "--no-cross-namespace-refs=false")
	x.controller.anywhere = true
	x.now = x.now.Add(10 * time.Minute)
	x.ready(x.settle(), "main@sha1:one")
}

// The process itself, with its own rights: a new artifact is applied when it comes, long before the interval is over.
func TestANewArtifactWakesItsBundles(t *testing.T) {
	x := start(t)
	x.serveFluxKind()
	x.reads(x.namespace)
	x.bundle.Spec.Source = v1alpha1.BundleSource{SourceRef: &v1alpha1.SourceReference{Kind: v1alpha1.GitRepository, Name: "vms"}}
	x.bundle.Spec.Interval = &metav1.Duration{Duration: time.Hour}
	x.bundle.Spec.Timeout = &metav1.Duration{Duration: time.Hour}
	x.publish(x.namespace, "main@sha1:one", "one")
	x.create(x.bundle)
	mgr, err := ctrl.NewManager(x.config, ctrl.Options{Scheme: x.Client.Scheme(), Metrics: metrics.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&options{sameNamespace: true}).setup(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for _, revision := range []string{"main@sha1:one", "main@sha1:two"} {
		x.publish(x.namespace, revision, strings.TrimPrefix(revision, "main@sha1:"))
		x.within(revision+" is applied", func() bool {
			b := &v1alpha1.Bundle{}
			err := x.Client.Get(t.Context(), client.ObjectKeyFromObject(x.bundle), b)
			status, _, _ := condition(b, "Ready")
			return err == nil && status == metav1.ConditionTrue && b.Status.LastAppliedRevision == revision
		})
	}
	x.stands("two")
}

func TestAnArtifactOfARegistry(t *testing.T) {
	x := start(t)
	r := sourcetest.ServeRegistry(t, nil)
	r.Push("team/vms:v1", sourcetest.FluxLayer, sourcetest.Archive(t, sourcetest.File("a.yaml", settings("a", "one"))))
	x.bundle.Spec.Source = v1alpha1.BundleSource{OCI: &v1alpha1.OCISource{
		URL: "oci://" + r.Host + "/team/vms", Ref: v1alpha1.OCIRef{SemVer: "1.x"}, CertSecretRef: &v1alpha1.LocalObjectReference{Name: "ca"},
	}}
	ca := x.secret("ca", map[string][]byte{"ca.pem": r.CA})
	x.create(x.bundle)
	x.failed(x.settle(), "FetchFailed", "spec.source.oci.certSecretRef: Secret "+x.namespace+"/ca", "key ca.crt is not there")
	ca.Data["ca.crt"] = r.CA
	x.update(ca)
	x.failed(x.settle(), "FetchFailed", "version 1.x of oci://"+r.Host+"/team/vms", "none of its 1 tags")
	digest := r.Push("team/vms:v1.0.0", sourcetest.FluxLayer, sourcetest.Archive(t, sourcetest.File("a.yaml", settings("a", "one"))))
	x.now = x.now.Add(10 * time.Minute)
	x.ready(x.settle(), "v1.0.0@"+digest)
	x.stands("one")
	x.change(func(s *v1alpha1.BundleSpec) { s.Source.OCI.SecretRef = &v1alpha1.LocalObjectReference{Name: "ca"} })
	x.failed(x.settle(), "FetchFailed", "spec.source.oci.secretRef: Secret "+x.namespace+"/ca", "key .dockerconfigjson is not there")
}
