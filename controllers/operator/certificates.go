package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/operator/pki"
	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/machine/names"
)

// holder is a server and the Secret that its certificate is in.
type holder struct {
	secret string
	id     pki.Identity
}

// certified are the servers that get a certificate in a Secret. Node agents ask for theirs (Signer).
var certified = []holder{
	{names.APICerts, pki.Identity{Peer: identity.Peer{Role: identity.RoleAPI}, DNS: service("virt-api")}},
	{names.OperatorCert, pki.Identity{Peer: identity.Peer{Role: identity.RoleOperator}, DNS: service("kubevirt-operator-webhook")}},
}

func service(name string) []string {
	full := name + "." + names.Namespace + ".svc"
	return []string{name + "." + names.Namespace, full, full + ".cluster.local"}
}

// Keys of the CA's Secret beside those of a kubernetes.io/tls one.
const (
	nextCert = "next.crt"
	nextKey  = "next.key"
)

// Certifier keeps authority and certificates of an install valid.
type Certifier struct {
	client client.Client
	live   client.Reader
}

// Round renews what is due, and leaves everything alone when the KubeVirt is gone or being removed.
func (c *Certifier) Round(ctx context.Context, key types.NamespacedName, now time.Time) (time.Time, error) {
	var kv v1.KubeVirt
	if err := c.client.Get(ctx, key, &kv); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	if key.Namespace != names.Namespace || kv.Status.Phase == v1.KubeVirtPhaseDeleting {
		return time.Time{}, nil
	}
	p := policy(&kv)
	a, err := authority(ctx, c.live)
	if err != nil {
		return time.Time{}, err
	}
	fresh, err := pki.Rotate(now, a, p)
	if err != nil {
		return time.Time{}, fmt.Errorf("rotating the authority: %w", err)
	}
	if err := c.store(ctx, a, fresh); err != nil {
		return time.Time{}, err
	}
	recheck := pki.Due(fresh, p)
	for _, h := range certified {
		due, err := c.renew(ctx, now, h, terms{fresh, p})
		if err != nil {
			return time.Time{}, fmt.Errorf("renewing %s: %w", h.secret, err)
		}
		if due.Before(recheck) {
			recheck = due
		}
	}
	return recheck.Add(time.Second), nil
}

// policy is the KubeVirt's, with the contract's defaults: a week and a day, renewed when a fifth is left.
func policy(kv *v1.KubeVirt) pki.Policy {
	p := pki.Policy{CA: 168 * time.Hour, Server: 24 * time.Hour}
	own := kv.Spec.CertificateRotationStrategy.SelfSigned
	if own == nil {
		own = &v1.KubeVirtSelfSignConfiguration{}
	}
	p.CA, p.CABefore = life(p.CA, own.CA)
	p.Server, p.ServerBefore = life(p.Server, own.Server)
	return p
}

// shortest is the least a certificate lasts: several times pki.Overlap, so that an authority is replaced in time.
const shortest = time.Hour

// life bounds what the KubeVirt asks for: each certificate is used for a fifth of its life before the next is made.
func life(usual time.Duration, c *v1.CertConfig) (lasts, before time.Duration) {
	lasts = usual
	if c != nil && c.Duration != nil {
		lasts = max(c.Duration.Duration, shortest)
	}
	before = lasts / 5
	if c != nil && c.RenewBefore != nil {
		before = min(max(c.RenewBefore.Duration, 0), lasts*4/5)
	}
	return lasts, before
}

// authority reads what is stored; nothing is stored before the first round.
func authority(ctx context.Context, live client.Reader) (pki.Authority, error) {
	var s corev1.Secret
	if err := get(ctx, live, names.CASecret, &s); err != nil {
		return pki.Authority{}, err
	}
	var m corev1.ConfigMap
	if err := get(ctx, live, names.CAConfigMap, &m); err != nil {
		return pki.Authority{}, err
	}
	return pki.Authority{
		Current: pki.Pair{Cert: s.Data[corev1.TLSCertKey], Key: s.Data[corev1.TLSPrivateKeyKey]},
		Next:    pki.Pair{Cert: s.Data[nextCert], Key: s.Data[nextKey]},
		Bundle:  []byte(m.Data[names.CABundleKey]),
	}, nil
}

// get leaves o empty where there is no such object.
func get(ctx context.Context, live client.Reader, name string, o client.Object) error {
	err := live.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// store writes what has changed: trust first, so that nothing is signed that nobody trusts.
func (c *Certifier) store(ctx context.Context, old, fresh pki.Authority) error {
	if string(old.Bundle) != string(fresh.Bundle) {
		m := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.CAConfigMap, Labels: managed()},
			Data:       map[string]string{names.CABundleKey: string(fresh.Bundle)},
		}
		if err := c.apply(ctx, m); err != nil {
			return fmt.Errorf("writing the CA bundle: %w", err)
		}
	}
	if string(old.Current.Cert) == string(fresh.Current.Cert) && string(old.Next.Cert) == string(fresh.Next.Cert) {
		return nil
	}
	s := secret(names.CASecret, fresh.Current)
	if len(fresh.Next.Cert) > 0 {
		s.Data[nextCert], s.Data[nextKey] = fresh.Next.Cert, fresh.Next.Key
	}
	if err := c.apply(ctx, s); err != nil {
		return fmt.Errorf("writing the authority: %w", err)
	}
	return nil
}

// terms are what certificates are signed with, and for how long.
type terms struct {
	authority pki.Authority
	policy    pki.Policy
}

// renew returns when the holder's certificate is due next.
func (c *Certifier) renew(ctx context.Context, now time.Time, h holder, t terms) (time.Time, error) {
	var s corev1.Secret
	if err := get(ctx, c.live, h.secret, &s); err != nil {
		return time.Time{}, err
	}
	old := pki.Pair{Cert: s.Data[corev1.TLSCertKey], Key: s.Data[corev1.TLSPrivateKeyKey]}
	fresh, err := pki.Renew(now, old, t.authority, h.id, t.policy)
	if err != nil {
		return time.Time{}, err
	}
	if string(fresh.Cert) != string(old.Cert) {
		err = c.apply(ctx, secret(h.secret, fresh))
	}
	return pki.RenewAt(fresh, t.policy), err
}

func (c *Certifier) apply(ctx context.Context, o client.Object) error {
	return applyWhole(ctx, c.client, o)
}

// applyWhole applies an object of which the operator owns every field; its TypeMeta must be set.
func applyWhole(ctx context.Context, c client.Client, o client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	whole := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields})
	return c.Apply(ctx, whole, client.ForceOwnership, client.FieldOwner(fieldManager))
}

func secret(name string, p pki.Pair) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: name, Labels: managed()},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: p.Cert, corev1.TLSPrivateKeyKey: p.Key},
	}
}

// own returns the operator's certificate for its webhook. It is read at each handshake, so a new one is used at once.
func own(live client.Reader) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		var s corev1.Secret
		if err := live.Get(hello.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.OperatorCert}, &s); err != nil {
			return nil, errors.Join(errors.New("there is no certificate"), err)
		}
		pair, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
		return &pair, err
	}
}
