package subresource

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	transport "k8s.io/client-go/transport/websocket"
	aggregation "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"virtstack.io/virtstack/kube/buildid"
	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/release"
)

// front is an API server of its own whose front proxy is set up, with virt-api behind it.
type front struct {
	*kubetest.Env
	alice *rest.Config
	ca    authority
	port  int // of node agents
}

// aggregated starts the whole of virt-api behind an API server, with the rights of its account.
func aggregated(t *testing.T) *front {
	t.Helper()
	f := &front{ca: newAuthority(t), port: freePort(t)}
	env := f.startAPIServer(t)
	f.install(t, env)
	port := freePort(t)
	s := &settings{
		address:      fmt.Sprintf("127.0.0.1:%d", port),
		webhooks:     "127.0.0.1:0",
		certificates: identity.Files{CertDir: write(t, f.ca.issue(t, "virt-api", identity.Peer{Role: identity.RoleAPI})), CAFile: filepath.Join(t.TempDir(), "ca")},
		streams:      StreamLimits{All: 10, User: 10},
		agentPort:    f.port,
	}
	writeFile(t, s.certificates.CAFile, []byte(f.ca.pem()))
	mgr, err := ctrl.NewManager(f.ConfigAs(account, serviceAccountGroups, nil), ctrl.Options{
		Scheme: scheme(t), Cache: cache.Options{ByObject: AgentPods()}, Metrics: metrics.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.setUp(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := mgr.Start(t.Context()); err != nil {
			t.Errorf("virt-api: %v", err)
		}
	}()
	f.register(t, port)
	return f
}

func (f *front) startAPIServer(t *testing.T) *envtest.Environment {
	t.Helper()
	proxyCA := newAuthority(t)
	pair := write(t, proxyCA.issue(t, "front-proxy-client", identity.Peer{}))
	ca := filepath.Join(t.TempDir(), "ca.crt")
	writeFile(t, ca, []byte(proxyCA.pem()))
	t.Setenv("VIRTSTACK_END_WITH_PARENT", "1")
	env := &envtest.Environment{
		BinaryAssetsDirectory: filepath.Join("..", "..", ".cluster", "bin"),
		CRDInstallOptions:     envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "..", "bundles", "crds")}},
	}
	env.ControlPlane.GetAPIServer().Configure().
		Set("proxy-client-cert-file", filepath.Join(pair, "tls.crt")).Set("proxy-client-key-file", filepath.Join(pair, "tls.key")).
		Set("requestheader-client-ca-file", ca).Set("requestheader-allowed-names", "front-proxy-client").
		Set("requestheader-username-headers", "X-Remote-User").Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-").Set("requestheader-uid-headers", "X-Remote-Uid")
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	types := scheme(t)
	if err := aggregation.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: types})
	if err != nil {
		t.Fatal(err)
	}
	f.Env = &kubetest.Env{Config: cfg, Client: c}
	return env
}

// install makes what virt-api needs, and a running VMI on node n1 of namespace shop, which alice may edit.
func (f *front) install(t *testing.T, env *envtest.Environment) {
	t.Helper()
	install(t, f.Env, "virt-api/rbac.yaml", "virt-api/policy.yaml", "roles/edit.yaml", "roles/default.yaml")
	vm, vmi := webVM(v1.RunStrategyHalted), webVMI("")
	for _, o := range []client.Object{&k8sv1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, vm, vmi} {
		o.SetUID("")
		vmi.OwnerReferences[0].UID = vm.UID // the API server's, once the VM is made
		if err := f.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	handler := pod(names.Namespace, "virt-handler-1", nil)
	handler.Labels[v1.AppLabel], handler.Spec.NodeName = names.Handler, "n1"
	if err := f.Client.Create(t.Context(), handler); err != nil {
		t.Fatal(err)
	}
	for o, status := range map[client.Object]string{
		handler:    `{"status":{"phase":"Running","podIP":"127.0.0.1","podIPs":[{"ip":"127.0.0.1"}]}}`,
		webVMI(""): `{"status":{"phase":"Running","nodeName":"n1"}}`,
	} {
		if err := f.Client.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	bind(t, f.Env, "shop", "kubevirt.io:edit")
	who, err := env.AddUser(envtest.User{Name: alice}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.alice = who.Config()
}

// register makes the API server ask virt-api, and waits until it does.
func (f *front) register(t *testing.T, port int) {
	t.Helper()
	svc := &k8sv1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "virt-api"}}
	svc.Spec = k8sv1.ServiceSpec{Type: k8sv1.ServiceTypeExternalName, ExternalName: "localhost"}
	if err := f.Client.Create(t.Context(), svc); err != nil {
		t.Fatal(err)
	}
	p := int32(port)
	api := &aggregation.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1." + group}, Spec: aggregation.APIServiceSpec{
		Group: group, Version: "v1", GroupPriorityMinimum: 1000, VersionPriority: 15, CABundle: []byte(f.ca.pem()),
		Service: &aggregation.ServiceReference{Namespace: names.Namespace, Name: "virt-api", Port: &p}}}
	if err := f.Client.Create(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(api), api)
		for _, c := range api.Status.Conditions {
			if c.Type == aggregation.Available && c.Status == aggregation.ConditionTrue {
				return err == nil
			}
		}
		return false
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return port(t, l.Addr().String())
}

// The whole way: user, API server, front proxy, virt-api with its account's rights alone, node agent.
func TestBehindAnAPIServer(t *testing.T) {
	f := aggregated(t)
	serveAgent(t, f.ca, agentAt{"n1", f.port}, echo)
	kube, err := discovery.NewDiscoveryClientForConfig(f.alice)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { // as the readiness probe waits
		err := kube.RESTClient().Put().AbsPath(inShop + "virtualmachines/web/start").Do(t.Context()).Error()
		return !apierrors.IsUnauthorized(err)
	})
	t.Run("version", func(t *testing.T) {
		raw, err := kube.RESTClient().Get().AbsPath(base + "/v1/version").DoRaw(t.Context())
		if err != nil || !strings.Contains(string(raw), `"gitVersion":"`+release.Version+"+"+buildid.Own()+`"`) {
			t.Errorf("%s, %v", raw, err)
		}
	})
	t.Run("discovery", func(t *testing.T) {
		eventually(t, func() bool {
			list, err := kube.ServerResourcesForGroupVersion(group + "/v1")
			return err == nil && len(list.APIResources) == len(Routes)
		})
	})
	t.Run("start", func(t *testing.T) {
		err := kube.RESTClient().Put().AbsPath(inShop + "virtualmachines/web/start").Do(t.Context()).Error()
		if err == nil || !strings.Contains(err.Error(), "VM is already running") {
			t.Errorf("start of a running VM: %v", err)
		}
		err = kube.RESTClient().Put().AbsPath("/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/web/start").Do(t.Context()).Error()
		if err == nil || !strings.Contains(err.Error(), `User "alice" cannot update resource "virtualmachines/start"`) {
			t.Errorf("start in another namespace: %v", err)
		}
	})
	t.Run("console", func(t *testing.T) {
		conn := dialAs(t, f.alice, inShop+"virtualmachineinstances/web/console")
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
		go func() { _ = conn.WriteMessage(websocket.BinaryMessage, data) }()
		var got bytes.Buffer
		for got.Len() < len(data) {
			_, r, err := conn.NextReader()
			if err == nil {
				_, err = io.Copy(&got, r)
			}
			if err != nil {
				t.Fatalf("after %d bytes: %v", got.Len(), err)
			}
		}
		if !bytes.Equal(got.Bytes(), data) {
			t.Error("what came back isn't what was sent")
		}
	})
}

func dialAs(t *testing.T, cfg *rest.Config, path string) *websocket.Conn {
	t.Helper()
	trip, holder, err := transport.RoundTripperFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(cfg.Host, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := transport.Negotiate(trip, holder, req, protocol)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
