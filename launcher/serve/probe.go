package serve

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/agent"
	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/guest"
)

// Probe implements guestv1.GuestServer. A paused guest has no agent that could answer, and is as well as it is meant to be.
func (s *Server) Probe(ctx context.Context, r *guestv1.ProbeRequest) (*guestv1.ProbeResponse, error) {
	if _, err := s.negotiate(r.GetProtocol()); err != nil {
		return nil, err
	}
	call := driver.AgentCall(driver.Ping{})
	if c := r.GetCommand(); len(c) > 0 {
		call = driver.Run{Path: c[0], Args: c[1:]}
	} else if now, _ := s.guest.Report(); now.State.Phase == driver.Paused {
		return &guestv1.ProbeResponse{}, nil
	}
	info, err := s.guest.Ask(ctx, call)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, guest.Line(err.Error()))
	}
	return &guestv1.ProbeResponse{ExitCode: int32(info.Ran.Exit), Output: agent.Printable(info.Ran.Output)}, nil
}
