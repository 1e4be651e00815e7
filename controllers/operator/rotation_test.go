package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/names"
)

// flow makes the API server ask virt-api at PORT of this machine: as a webhook, and as the server of an API group.
const flow = `---
apiVersion: v1
kind: Service
metadata: {name: virt-api}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: flow}
webhooks:
- name: flow.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {name: virt-api, namespace: kubevirt, port: PORT, path: /review}}
  objectSelector: {matchLabels: {flow: "yes"}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.flow.example.test}
spec:
  group: flow.example.test
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {name: virt-api, namespace: kubevirt, port: PORT}
`

// server stands in for virt-api. Every request is a handshake of its own, with the certificate that is mounted.
type server struct {
	*install
	port string
	kube kubernetes.Interface

	mu      sync.Mutex
	mounted tls.Certificate
	issuers map[string]bool
	serials map[string]bool
	asked   int
}

func (i *install) serve(t *testing.T) *server {
	t.Helper()
	s := &server{install: i, issuers: map[string]bool{}, serials: map[string]bool{}}
	var err error
	if s.kube, err = kubernetes.NewForConfig(i.Config); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	h := &http.Server{Handler: http.HandlerFunc(s.answer), ReadHeaderTimeout: time.Minute}
	h.SetKeepAlivesEnabled(false)
	go func() {
		_ = h.Serve(tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate}))
	}()
	t.Cleanup(func() { _ = h.Close() }) // it has nothing to lose
	return s
}

func (s *server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := s.mounted
	return &pair, nil
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/review" {
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"flow.example.test/v1","resources":[]}`)
		return
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	_, uid, _ := strings.Cut(string(body), `"uid":"`)
	uid, _, _ = strings.Cut(uid, `"`)
	_, _ = fmt.Fprintf(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%q,"allowed":true}}`, uid)
}

// mount brings the certificate of the Secret to the server, as the kubelet does some time after it has changed.
func (s *server) mount(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{}
	if !s.get(secret, names.APICerts) {
		return
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mounted = pair
	s.issuers[leaf.Issuer.String()], s.serials[leaf.SerialNumber.String()] = true, true
}

// ask sends one request that the webhook reviews, and one to the API group.
func (s *server) ask(ctx context.Context) error {
	s.asked++
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "flow", Labels: map[string]string{"flow": "yes"}}}
	if err := s.Client.Create(ctx, m, client.DryRunAll); err != nil {
		return fmt.Errorf("reviewed: %w", err)
	}
	if _, err := s.kube.Discovery().RESTClient().Get().AbsPath("/apis/flow.example.test/v1").DoRaw(ctx); err != nil {
		return fmt.Errorf("aggregated: %w", err)
	}
	return nil
}

// step lets five minutes pass. What is mounted is late by one step, and the API server's trust by half of the steps.
func (s *server) step(t *testing.T, n int) {
	t.Helper()
	s.now = s.now.Add(5 * time.Minute)
	s.mount(t)
	ask := func(when string) {
		if err := s.ask(t.Context()); err != nil {
			t.Errorf("at %s, %s: %v", s.now.Format(time.TimeOnly), when, err)
		}
	}
	ask("with what was signed before")
	if _, err := s.certifier.Round(t.Context(), s.key, s.now); err != nil {
		t.Fatal(err)
	}
	ask("after signing")
	if n%2 == 0 {
		if _, err := s.installer.Round(t.Context(), s.key, s.now); err != nil {
			t.Fatal(err)
		}
		ask("after trust has been renewed")
	}
}

func hours(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }

// The authority and the certificates that it signs are replaced while requests go through a webhook and an aggregated API:
// not one is lost, though what is mounted and what is trusted are late. The clock runs ten hours behind, so that what is
// made is valid for the API server's own.
func TestARotationLosesNoRequest(t *testing.T) {
	i := begin(t)
	i.now = time.Now().Add(-10 * time.Hour)
	start := i.now
	s := i.serve(t)
	i.installer.files = components(t, strings.ReplaceAll(flow, "PORT", s.port))
	kv := &v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt"}}
	often := &v1.CertConfig{Duration: hours(20), RenewBefore: hours(16)}
	kv.Spec.CertificateRotationStrategy.SelfSigned = &v1.KubeVirtSelfSignConfiguration{CA: often, Server: often}
	i.create(kv)
	defer i.remove(t)
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		s.mount(t)
		i.startPods()
		return is("Available", "True")(i.round()), nil
	})
	if err != nil {
		t.Fatalf("installing: %v; %v", err, i.round().Status.Conditions)
	}
	for _, from := range []time.Duration{4 * time.Hour, 8 * time.Hour} { // when something is due
		i.now = start.Add(from - 10*time.Minute)
		for n := range 10 {
			s.step(t, n)
		}
	}
	if len(s.issuers) < 2 || len(s.serials) < 3 || s.asked < 40 {
		t.Errorf("%d requests met %d authorities and %d certificates", s.asked, len(s.issuers), len(s.serials))
	}
}
