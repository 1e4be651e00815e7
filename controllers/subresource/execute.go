package subresource

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	backup "kubevirt.io/api/backup/v1alpha1"
	v1 "kubevirt.io/api/core/v1"
	instancetype "kubevirt.io/api/instancetype/v1beta1"
	snapshot "kubevirt.io/api/snapshot/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/admission"
	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/kube/process"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/names"
)

// requests is how many requests are served at a time; a stream counts until it is open.
const requests = 400

type settings struct {
	address, webhooks string
	certificates      identity.Files
	streams           StreamLimits
	agentPort         int // zero: names.HandlerPort
}

func (f *settings) bind(fs *flag.FlagSet) {
	fs.StringVar(&f.address, "bind-address", fmt.Sprintf(":%d", names.APIPort), "address of the aggregated API")
	fs.StringVar(&f.webhooks, "webhook-bind-address", fmt.Sprintf(":%d", names.WebhookPort), "address of the admission webhooks")
	fs.StringVar(&f.certificates.CertDir, "certificates", "/etc/virtstack/certificates", "directory of tls.crt and tls.key, read again at each handshake")
	fs.StringVar(&f.certificates.CAFile, "ca-bundle", "/etc/virtstack/ca/"+names.CABundleKey, "file of the roots that node agents are verified with")
	fs.IntVar(&f.streams.All, "max-streams", 2000, "how many consoles may be open at a time")
	fs.IntVar(&f.streams.User, "max-streams-per-user", 500, "how many consoles one user may have open at a time")
}

// readTypes are those that virt-api reads beside those of the core.
var readTypes = runtime.NewSchemeBuilder(instancetype.AddToScheme, snapshot.AddToScheme, backup.AddToScheme)

// Execute runs virt-api until it is told to stop and returns the exit code.
func Execute() int {
	f := &settings{}
	return process.Process{
		Name:   names.API,
		Scheme: readTypes.AddToScheme,
		Cache:  cache.Options{ByObject: AgentPods()},
		Flags:  f.bind,
		Setup:  f.setUp,
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
		Config:        configuration(mgr.GetCache()),
		Authenticator: front,
		Reviewer:      ClusterReviewer{kube},
		Agents:        Agents{Pods: mgr.GetCache(), Identity: f.certificates, Port: f.agentPort},
		Streams:       streams,
		Reach: func(ctx context.Context) error {
			return kube.Discovery().RESTClient().Get().AbsPath("/livez").Do(ctx).Error()
		},
		Log: mgr.GetLogger(),
	}
	reviews := admission.Cluster{Configuration: server.Config, May: ClusterReviewer{kube}.Review, Lists: mgr.GetCache(), Live: direct}
	return errors.Join(
		mgr.AddReadyzCheck("front-proxy", front.Ready),
		mgr.AddReadyzCheck("certificate", func(*http.Request) error { _, err := f.certificates.Certificate(); return err }),
		mgr.Add(front),
		mgr.Add(&listener{streams: streams, endpoints: []endpoint{
			{f.address, limited(requests, server), f.tls(tls.RequestClientCert)},
			{f.webhooks, limited(requests, admission.Handler(reviews)), f.tls(tls.NoClientCert)},
		}}),
	)
}

// configuration is what the one KubeVirt says now, from the cache.
func configuration(cached client.Reader) func(context.Context) (config.Config, error) {
	return func(ctx context.Context) (config.Config, error) {
		all := &v1.KubeVirtList{}
		if err := cached.List(ctx, all, client.InNamespace(names.Namespace)); err != nil {
			return config.Config{}, fmt.Errorf("listing KubeVirts: %w", err)
		}
		if len(all.Items) != 1 {
			return config.From(nil), nil
		}
		return config.From(&all.Items[0]), nil
	}
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
