package stories

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/driver/fake"
	"virtstack.io/virtstack/launcher/guest"
	"virtstack.io/virtstack/launcher/serve"
	"virtstack.io/virtstack/nodeagent/link"
)

const guestXML = `<domain type="qemu"><os><type machine="q35">hvm</type></os><devices></devices></domain>`

// A node agent works with the launchers that releases up to two minor versions before and after it have left on its
// node: it learns their state, pauses, resumes and ends them.
func TestNodeAgentsAndLaunchersOfOtherReleases(t *testing.T) {
	const minors = 2
	newest := guestv1.Protocol
	t.Cleanup(func() { guestv1.Protocol = newest })
	for agent := newest; agent <= newest+minors; agent++ {
		for launcher := newest; launcher <= newest+minors; launcher++ {
			t.Run(fmt.Sprintf("agent %d, launcher %d", agent, launcher), func(t *testing.T) {
				worksTogether(t, agent, launcher)
			})
		}
	}
}

func worksTogether(t *testing.T, agent, launcher uint32) {
	socket := filepath.Join(t.TempDir(), "guest.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := guest.New(fake.Open(), time.Minute)
	go g.Loop(t.Context())
	guestv1.Protocol = launcher
	server := serve.New(g, func(context.Context, *v1.VirtualMachineInstance, *guestv1.SyncVirtualMachineRequest) (serve.Prepared, error) {
		return serve.Prepared{XML: guestXML}, nil
	}, nil)
	go func() { _ = server.Serve(t.Context(), l) }()
	guestv1.Protocol = agent
	from, err := link.Open(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }() // the test has its answers
	state, err := from.Sync(t.Context(), &guestv1.SyncVirtualMachineRequest{Vmi: []byte(`{"metadata":{"name":"web"}}`)})
	if err != nil || state.GetPhase() != guestv1.State_PHASE_RUNNING {
		t.Fatalf("started: %v, %v", state, err)
	}
	for _, do := range []func(context.Context) error{from.Pause, from.Unpause, from.Kill} {
		if err := do(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
