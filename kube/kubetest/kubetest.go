// Package kubetest gives tests a real API server with etcd behind it and our CRDs in it, but no nodes and no
// controllers: what the API server itself does (schemas, CEL, field ownership, RBAC, watches) is proven on it. The
// server is the dev cluster's binary, .cluster/bin/kube.
package kubetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	backup "kubevirt.io/api/backup/v1alpha1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
	snapshot "kubevirt.io/api/snapshot/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"virtstack.io/virtstack/api/v1alpha1"
)

// Env is a running API server. Tests of one package may share it: each takes a namespace of its own.
type Env struct {
	// Config is the administrator's. Copy it before changing it.
	Config *rest.Config
	// Client is the administrator's: it reads from the API server, not from a cache. Its scheme has Kubernetes' own
	// kinds, CRDs, kubevirt.io/v1 and virtstack.io/v1alpha1; unstructured objects reach the rest.
	Client client.Client
	// Kubectl is the path of kubectl.
	Kubectl string

	env *envtest.Environment
}

// shared is the one server of a test binary. It stops with the last test that uses it, or with Main.
var shared struct {
	sync.Mutex
	env   *Env
	users int
}

// Main runs a package's tests and keeps one server for all of them, if any test starts it:
//
//	func TestMain(m *testing.M) { kubetest.Main(m) }
//
// Without it the server is started again for each test that finds none running, which costs seconds.
func Main(m *testing.M) {
	shared.users++
	code := m.Run()
	if err := release(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Start returns the test binary's API server and starts it if need be. It fails the test where the binary is missing.
func Start(t testing.TB) *Env {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.env == nil {
		e, err := start()
		if err != nil {
			t.Fatalf("starting an API server: %v", err)
		}
		shared.env = e
	}
	shared.users++
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return shared.env
}

// release gives up one use of the server and stops it with the last.
func release() error {
	shared.Lock()
	defer shared.Unlock()
	shared.users--
	if shared.users > 0 || shared.env == nil {
		return nil
	}
	e := shared.env
	shared.env = nil
	if err := e.env.Stop(); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	return nil
}

func start() (*Env, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	return startWith(crds(root))
}

// startWith starts a server with the CRDs of some directories and flags (name=value) beside the usual ones.
func startWith(crds []string, flags ...string) (*Env, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(root, ".cluster", "bin")
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf(`%w: run "make up" (or "go run -C ci/cluster . build") first`, err)
		}
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	// Both processes look after their parent: a test binary that is killed leaves none behind.
	if err := os.Setenv("VIRTSTACK_END_WITH_PARENT", "1"); err != nil {
		return nil, err
	}
	no := false
	env := &envtest.Environment{
		BinaryAssetsDirectory: bin,
		UseExistingCluster:    &no,
		Scheme:                scheme,
		CRDInstallOptions: envtest.CRDInstallOptions{
			Paths: crds, ErrorIfPathMissing: true, MaxTime: time.Minute, PollInterval: 50 * time.Millisecond,
		},
		ControlPlaneStartTimeout: 2 * time.Minute, // several at once share two cores
		ControlPlaneStopTimeout:  time.Minute,
	}
	for _, f := range flags {
		name, value, _ := strings.Cut(f, "=")
		env.ControlPlane.GetAPIServer().Configure().Append(name, value)
	}
	return launch(env, filepath.Join(bin, "kubectl"))
}

func launch(env *envtest.Environment, kubectl string) (*Env, error) {
	cfg, err := env.Start()
	if err != nil {
		_ = env.Stop() // what did start; the first error is the one to tell
		return nil, err
	}
	cfg.QPS, cfg.Burst = -1, -1 // a test waits for nobody
	c, err := client.New(cfg, client.Options{Scheme: env.Scheme})
	if err != nil {
		return nil, err
	}
	return &Env{Config: cfg, Client: c, Kubectl: kubectl, env: env}, nil
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, apiextensionsv1.AddToScheme, kubevirtv1.AddToScheme, v1alpha1.AddToScheme,
		instancetypev1beta1.AddToScheme, snapshot.AddToScheme, backup.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// findRoot walks up from the test's directory to the module's root.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "ci", "cluster", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("looking for the root of the checkout upwards from the test: %w", os.ErrNotExist)
		}
		dir = filepath.Dir(dir)
	}
}

// crds returns the directory of the CRDs that we install, if there is one.
func crds(root string) []string {
	dir := filepath.Join(root, "bundles", "crds")
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	return []string{dir}
}

// Namespace makes a new namespace and returns its name. It is never deleted: no controller would empty it.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := e.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	return ns.Name
}

// ConfigAs returns a configuration that acts as another user: a person, or a service account with its groups and, as
// extra, the claims of its token.
func (e *Env) ConfigAs(user string, groups []string, extra map[string][]string) *rest.Config {
	cfg := rest.CopyConfig(e.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups, Extra: extra}
	return cfg
}

// As returns a client like Client that acts as another user.
func (e *Env) As(t testing.TB, user string, groups []string, extra map[string][]string) client.Client {
	t.Helper()
	c, err := client.New(e.ConfigAs(user, groups, extra), client.Options{Scheme: e.Client.Scheme()})
	if err != nil {
		t.Fatalf("acting as %s: %v", user, err)
	}
	return c
}
