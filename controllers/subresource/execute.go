package subresource

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/admission"
	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/kube/process"
	"virtstack.io/virtstack/machine/names"
)

// requests is how many requests are served at a time, streams not counted.
const requests = 400

type settings struct {
	address, webhooks string
	certificates      identity.Files
	streams           int
	agentPort         int // zero: names.HandlerPort
}

func (f *settings) bind(fs *flag.FlagSet) {
	fs.StringVar(&f.address, "bind-address", fmt.Sprintf(":%d", names.APIPort), "address of the aggregated API")
	fs.StringVar(&f.webhooks, "webhook-bind-address", fmt.Sprintf(":%d", names.WebhookPort), "address of the admission webhooks")
	fs.StringVar(&f.certificates.CertDir, "certificates", "/etc/virtstack/certificates", "directory of tls.crt and tls.key, read again at each handshake")
	fs.StringVar(&f.certificates.CAFile, "ca-bundle", "/etc/virtstack/ca/"+names.CABundleKey, "file of the roots that node agents are verified with")
	fs.IntVar(&f.streams, "max-streams", 2000, "how many consoles may be open at a time")
}

// Execute runs virt-api until it is told to stop and returns the exit code.
func Execute() int {
	f := &settings{}
	return process.Process{
		Name:  names.API,
		Cache: cache.Options{ByObject: AgentPods()},
		Flags: f.bind,
		Setup: f.setUp,
	}.Execute()
}

func (f *settings) setUp(ctx context.Context, mgr ctrl.Manager) error {
	kube, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	front, err := NewFrontProxy(kube)
	if err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &k8sv1.Pod{}, byNode, nodeOf); err != nil {
		return fmt.Errorf("indexing node agents: %w", err)
	}
	streams := NewStreams(ctx, f.streams)
	server := &Server{
		Kube:          direct,
		Authenticator: front,
		Reviewer:      ClusterReviewer{kube},
		Agents:        Agents{Pods: mgr.GetCache(), Identity: f.certificates, Port: f.agentPort},
		Streams:       streams,
		Reach: func(ctx context.Context) error {
			return kube.Discovery().RESTClient().Get().AbsPath("/livez").Do(ctx).Error()
		},
		Log: mgr.GetLogger(),
	}
	return errors.Join(
		mgr.AddReadyzCheck("front-proxy", front.Ready),
		mgr.AddReadyzCheck("certificate", func(*http.Request) error { _, err := f.certificates.Certificate(); return err }),
		mgr.Add(front),
		mgr.Add(&listener{streams: streams, endpoints: []endpoint{
			{f.address, limited(requests, server), f.tls(tls.RequestClientCert)},
			{f.webhooks, limited(requests, admission.Handler()), f.tls(tls.NoClientCert)},
		}}),
	)
}

// tls shows the certificate as it is on disk. A client's certificate is verified where it is used: as the front
// proxy's, whose CA may change meanwhile.
func (f *settings) tls(clients tls.ClientAuthType) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		ClientAuth:     clients,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.certificates.Certificate() },
	}
}
