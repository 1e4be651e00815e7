package device

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// kubelet takes registrations as the real one does.
type kubelet struct {
	dp.UnimplementedRegistrationServer
	registered chan *dp.RegisterRequest
}

func (k *kubelet) Register(_ context.Context, r *dp.RegisterRequest) (*dp.Empty, error) {
	k.registered <- r
	return &dp.Empty{}, nil
}

func startKubelet(t *testing.T, dir string) (k *kubelet, stop func()) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, kubeletSocket))
	if err != nil {
		t.Fatal(err)
	}
	k = &kubelet{registered: make(chan *dp.RegisterRequest, 10)}
	s := grpc.NewServer()
	dp.RegisterRegistrationServer(s, k)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return k, s.Stop
}

func next(t *testing.T, k *kubelet) *dp.RegisterRequest {
	t.Helper()
	select {
	case r := <-k.registered:
		return r
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was registered")
		return nil
	}
}

// allocate asks a plugin as the kubelet does before it starts a container.
func allocate(t *testing.T, socket string) (devices int, names []string) {
	t.Helper()
	c, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client := dp.NewDevicePluginClient(c)
	w, err := client.ListAndWatch(t.Context(), &dp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.Recv()
	if err != nil {
		t.Fatal(err)
	}
	a, err := client.Allocate(t.Context(), &dp.AllocateRequest{ContainerRequests: []*dp.ContainerAllocateRequest{{DevicesIds: []string{list.Devices[0].ID}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range a.ContainerResponses[0].CdiDevices {
		names = append(names, d.Name)
	}
	return len(list.Devices), names
}

// start runs plugins for one device that is there and one that isn't.
func start(t *testing.T, dir string) (p *Plugins, changed <-chan struct{}) {
	t.Helper()
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	news := make(chan struct{}, 10)
	p = &Plugins{
		Devices: []Device{{"there", "devices.example/there", there}, {"gone", "devices.example/gone", there + "-not"}},
		Count:   7, Dir: dir, CDI: t.TempDir(), Changed: func() { news <- struct{}{} },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p, news
}

func until(t *testing.T, changed <-chan struct{}, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("it never came to be")
		}
	}
}

func TestDevicesAreOfferedAndNamedByCDI(t *testing.T) {
	dir := t.TempDir()
	k, _ := startKubelet(t, dir)
	p, changed := start(t, dir)
	until(t, changed, p.Serving)
	want := &dp.RegisterRequest{Version: "v1beta1", Endpoint: "virtstack-there.sock", ResourceName: "devices.example/there"}
	if got := next(t, k); got.String() != want.String() {
		t.Errorf("registered %v, want %v", got, want)
	}
	if count, names := allocate(t, filepath.Join(dir, "virtstack-there.sock")); count != 7 || len(names) != 1 || names[0] != "virtstack.io/device=there" {
		t.Errorf("got %d devices, CDI names %v", count, names)
	}
	raw, err := os.ReadFile(filepath.Join(p.CDI, "virtstack.io-device.json"))
	if err != nil {
		t.Fatal(err)
	}
	var spec cdiSpec
	if err := json.Unmarshal(raw, &spec); err != nil {
		t.Fatal(err)
	}
	path := p.Devices[0].Path
	node := cdiNode{Path: path, HostPath: path, FileMode: 0o600, Permissions: "rw", UID: 107, GID: 107}
	if d := cmp.Diff(cdiSpec{"0.5.0", "virtstack.io/device", []cdiDevice{{"there", cdiEdits{[]cdiNode{node}}}}}, spec); d != "" {
		t.Error(d)
	}
}

func TestDevicesAreOfferedAgainToAKubeletThatRestarted(t *testing.T) {
	dir := t.TempDir()
	k, stop := startKubelet(t, dir)
	p, changed := start(t, dir)
	next(t, k)
	until(t, changed, p.Serving)
	stop()
	os.Remove(filepath.Join(dir, "virtstack-there.sock")) // as a kubelet does when it starts
	k, _ = startKubelet(t, dir)
	next(t, k)
	until(t, changed, p.Serving)
	if count, _ := allocate(t, filepath.Join(dir, "virtstack-there.sock")); count != 7 {
		t.Errorf("got %d devices", count)
	}
}

func TestANodeWithoutKubeletServesNothing(t *testing.T) {
	p, changed := start(t, t.TempDir())
	if p.Serving() || len(changed) != 0 {
		t.Error("it serves")
	}
}
