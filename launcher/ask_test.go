package launcher

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// probed answers each probe as its command says.
type probed struct {
	guestv1.UnimplementedGuestServer
}

func (probed) Probe(ctx context.Context, r *guestv1.ProbeRequest) (*guestv1.ProbeResponse, error) {
	switch strings.Join(r.GetCommand(), " ") {
	case "":
		return &guestv1.ProbeResponse{}, nil
	case "/bin/check -d --disk":
		return &guestv1.ProbeResponse{ExitCode: 3, Output: "the disk is full"}, nil
	case "/bin/slow":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, status.Error(codes.FailedPrecondition, "no guest agent is connected")
}

func TestTheKubeletIsToldHowTheGuestIs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "guest.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	guestv1.RegisterGuestServer(server, probed{})
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	for line, tc := range map[string]struct {
		socket string
		code   int
		says   string
	}{
		"--timeout-seconds 5":                         {socket, 0, ""},
		"--timeout-seconds 5 -- /bin/check -d --disk": {socket, 3, "the disk is full\n"},
		"--timeout-seconds 5 -- /bin/other":           {socket, 1, "no guest agent is connected\n"},
		"--timeout-seconds 1 -- /bin/slow":            {socket, 1, "deadline exceeded"},
		"--timeout-seconds 0":                         {socket, 2, ""},
		"--timeout-seconds 2":                         {socket + "x", 1, "no such file"},
	} {
		var out bytes.Buffer
		start := time.Now()
		if code := ask(strings.Fields(line), tc.socket, &out); code != tc.code || !strings.Contains(out.String(), tc.says) || time.Since(start) > 10*time.Second {
			t.Errorf("%s: got %d and %q after %s, want %d and %q", line, code, out.String(), time.Since(start), tc.code, tc.says)
		}
	}
}
