package bundle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

func (x *tenant) secret(name string, data map[string][]byte) *corev1.Secret {
	x.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}, Data: data}
	x.create(s)
	return s
}

func (x *tenant) update(o client.Object) {
	x.t.Helper()
	if err := x.Client.Update(x.t.Context(), o); err != nil {
		x.t.Fatal(err)
	}
	x.now = x.now.Add(10 * time.Minute)
}

// stands checks that ConfigMap a still has what a revision before gave it.
func (x *tenant) stands(value string) {
	x.t.Helper()
	m := &corev1.ConfigMap{}
	if !x.exists(m, "a") || m.Data["value"] != value {
		x.t.Errorf("the last good state does not stand: %v, want %s", m.Data, value)
	}
}

func TestABundleOverSSH(t *testing.T) {
	x := start(t)
	key := sourcetest.NewKey(t)
	url, hosts := x.repo.SSH(key)
	x.bundle.Spec.Source.Git.URL = url
	hash := x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.failed(x.settle(), "FetchFailed", "spec.source.git.secretRef: there is none", "identity", "known_hosts")
	x.change(func(s *v1alpha1.BundleSpec) { s.Source.Git.SecretRef = &v1alpha1.LocalObjectReference{Name: "deploy"} })
	x.failed(x.settle(), "FetchFailed", "spec.source.git.secretRef: reading Secret "+x.namespace+"/deploy as account deployer", "not found")
	s := x.secret("deploy", map[string][]byte{"identity": key.Private})
	x.now = x.now.Add(10 * time.Minute)
	x.failed(x.settle(), "FetchFailed", "spec.source.git.secretRef: Secret "+x.namespace+"/deploy", "key known_hosts is not there")
	s.Data["known_hosts"] = hosts
	x.update(s)
	x.ready(x.settle(), "main@sha1:"+hash)

	x.repo.Commit("a.yaml", settings("a", "two"))
	_, s.Data["known_hosts"] = x.repo.SSH(key) // another server's
	x.update(s)
	b := x.settle()
	x.failed(b, "FetchFailed", url, "branch main", "is not in known_hosts")
	x.stands("one")
	if b.Status.LastAppliedRevision != "main@sha1:"+hash {
		t.Errorf("applied is %s", b.Status.LastAppliedRevision)
	}
	x.quiet("ssh")
}

// Nothing of a commit that nobody has signed who may is applied, wherever it came from (threat G3); what was applied stands. A key that is taken away
// counts at once, though the commit is the same.
func TestOnlySignedCommitsAreApplied(t *testing.T) {
	for _, kind := range []string{"Secret", "ConfigMap"} {
		t.Run(kind, func(t *testing.T) {
			x := start(t)
			key, other := sourcetest.NewKey(t), sourcetest.NewKey(t)
			keys := x.keys(kind, key)
			verify := &v1alpha1.GitVerification{SecretRef: &v1alpha1.LocalObjectReference{Name: "signers"}}
			if kind == "ConfigMap" {
				verify.SecretRef, verify.ConfigMapRef = nil, verify.SecretRef
			}
			x.bundle.Spec.Source.Git.Verify = verify
			x.repo.SignSSH(key)
			good := x.repo.SignedCommit("a.yaml", settings("a", "one"))
			x.create(x.bundle)
			x.ready(x.settle(), "main@sha1:"+good)

			bad := x.repo.Commit("a.yaml", settings("a", "two"))
			b := x.settle()
			x.failed(b, "VerificationFailed", "main@sha1:"+bad, x.repo.URL, "is not signed")
			x.stands("one")
			if b.Status.LastAppliedRevision != "main@sha1:"+good {
				t.Errorf("applied is %s", b.Status.LastAppliedRevision)
			}
			x.repo.SignSSH(other)
			bad = x.repo.SignedCommit("a.yaml", settings("a", "three"))
			x.failed(x.settle(), "VerificationFailed", "main@sha1:"+bad, "signed by no SSH key of those that are allowed")
			x.stands("one")
			x.trust(keys, "a.sshpub", other)
			x.ready(x.settle(), "main@sha1:"+bad)
			x.trust(keys, "a.sshpub", key)
			x.failed(x.settle(), "VerificationFailed", "main@sha1:"+bad, "signed by no SSH key")
			x.trust(keys, "a.pub", other)
			x.failed(x.settle(), "FetchFailed", kind+" "+x.namespace+"/signers", "key a.pub must end in .asc")
		})
	}
}

// keys makes the object that names who may sign.
func (x *tenant) keys(kind string, key sourcetest.Key) client.Object {
	if kind == "Secret" {
		return x.secret("signers", map[string][]byte{"a.sshpub": key.Public})
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "signers"}, Data: map[string]string{"a.sshpub": string(key.Public)}}
	x.create(m)
	return m
}

// trust changes whose signature is accepted.
func (x *tenant) trust(keys client.Object, name string, key sourcetest.Key) {
	switch o := keys.(type) {
	case *corev1.Secret:
		o.Data = map[string][]byte{name: key.Public}
	case *corev1.ConfigMap:
		o.Data = map[string]string{name: string(key.Public)}
	}
	x.update(keys)
}
