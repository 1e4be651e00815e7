// Package serve answers the node agent: the gRPC service guest/v1 on a unix socket in the launcher's run directory.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/guest"
)

// Limits of a request, in bytes: a VMI of up to 1 MiB, and libvirt's capability cache beside it.
const (
	maxVMI     = 1 << 20
	maxRequest = 8 << 20
)

// Prepared is a guest that is ready to be started.
type Prepared struct {
	XML string
	// Targets are the device names in the guest, by disk.
	Targets map[string]string
	NICs    []domain.NIC
}

// Prepare makes all that a VMI's guest needs. It may be called again with the same request. An error for which the VMI
// or an image is to blame comes from Refuse, and is the launcher's end: a VMI's spec doesn't change, and its owner is
// told by a VMI that failed. Any other error may be gone the next time.
type Prepare func(context.Context, *v1.VirtualMachineInstance, *guestv1.SyncVirtualMachineRequest) (Prepared, error)

// Refuse marks an error as one that no second try mends.
func Refuse(err error) error { return refusal{err} }

type refusal struct{ error }

// Server is a guestv1.GuestServer.
type Server struct {
	guestv1.UnimplementedGuestServer

	guest    *guest.Guest
	prepare  Prepare
	dumps    Dumps
	devices  chan devices // holds one value
	protocol uint32       // the newest that is spoken
}

// devices are those of the guest that reports tell of.
type devices struct {
	disks []*guestv1.Disk
	nics  []*guestv1.Nic
}

// Dumps makes the file of a dump on a volume of the guest's.
type Dumps func(guest.Order) (guest.DumpFile, error)

// New returns a server for a guest.
func New(g *guest.Guest, prepare Prepare, dumps Dumps) *Server {
	s := &Server{guest: g, prepare: prepare, dumps: dumps, devices: make(chan devices, 1), protocol: guestv1.Protocol}
	s.devices <- devices{}
	return s
}

// Serve serves until ctx ends; watchers then get up to a second to take the last state.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxRequest))
	guestv1.RegisterGuestServer(server, s)
	done := context.AfterFunc(ctx, func() {
		last := time.AfterFunc(time.Second, server.Stop)
		server.GracefulStop()
		last.Stop()
	})
	defer done()
	return server.Serve(l)
}

// negotiate returns the version to speak with a caller.
func (s *Server) negotiate(theirs uint32) (uint32, error) {
	ours := min(theirs, s.protocol)
	if ours < guestv1.OldestProtocol {
		return 0, status.Errorf(codes.FailedPrecondition, "protocol %d is not spoken here, want at least %d", theirs, guestv1.OldestProtocol)
	}
	return ours, nil
}

// SyncVirtualMachine implements guestv1.GuestServer.
func (s *Server) SyncVirtualMachine(ctx context.Context, r *guestv1.SyncVirtualMachineRequest) (*guestv1.SyncVirtualMachineResponse, error) {
	protocol, err := s.negotiate(r.GetProtocol())
	if err != nil {
		return nil, err
	}
	if now, _ := s.guest.Report(); now.State.Phase <= driver.Defined {
		if err := s.start(ctx, r); err != nil {
			return nil, err
		}
	}
	return &guestv1.SyncVirtualMachineResponse{Protocol: protocol, State: s.state()}, nil
}

func (s *Server) start(ctx context.Context, r *guestv1.SyncVirtualMachineRequest) error {
	if len(r.GetVmi()) > maxVMI {
		return status.Errorf(codes.InvalidArgument, "a VMI of %d bytes, at most %d", len(r.GetVmi()), maxVMI)
	}
	vmi := &v1.VirtualMachineInstance{}
	if err := json.Unmarshal(r.GetVmi(), vmi); err != nil {
		return status.Errorf(codes.InvalidArgument, "reading the VMI: %s", guest.Line(err.Error()))
	}
	ready, err := s.prepare(ctx, vmi, r)
	if errors.As(err, &refusal{}) {
		s.guest.Refuse(err.Error())
		return status.Error(codes.InvalidArgument, guest.Line(err.Error()))
	}
	if err != nil {
		return status.Error(codes.Aborted, guest.Line(err.Error())) // Unavailable is a launcher that doesn't answer
	}
	<-s.devices
	s.devices <- devicesOf(vmi, ready)
	if err := s.guest.SyncVMI(ctx, ready.XML, first(vmi)); err != nil {
		return status.Error(codes.Internal, guest.Line(err.Error()))
	}
	return nil
}

// first is the phase in which the VMI's guest begins.
func first(vmi *v1.VirtualMachineInstance) driver.Phase {
	if s := vmi.Spec.StartStrategy; s != nil && *s == v1.StartStrategyPaused {
		return driver.Paused
	}
	return driver.Running
}

func devicesOf(vmi *v1.VirtualMachineInstance, ready Prepared) devices {
	d := devices{disks: make([]*guestv1.Disk, 0, len(ready.Targets))}
	for i := range vmi.Spec.Domain.Devices.Disks {
		name := vmi.Spec.Domain.Devices.Disks[i].Name
		d.disks = append(d.disks, &guestv1.Disk{Name: name, Target: ready.Targets[name]})
	}
	for _, n := range ready.NICs {
		d.nics = append(d.nics, &guestv1.Nic{Name: n.Name, Mac: n.MAC, Queues: uint32(n.Queues), LinkDown: n.Down})
	}
	return d
}

// Watch implements guestv1.GuestServer. The stream ends after a final state.
func (s *Server) Watch(r *guestv1.WatchRequest, stream grpc.ServerStreamingServer[guestv1.State]) error {
	if _, err := s.negotiate(r.GetProtocol()); err != nil {
		return err
	}
	for {
		_, news := s.guest.Report()
		state := s.state()
		if err := stream.Send(state); err != nil {
			return err
		}
		if state.GetPhase() == guestv1.State_PHASE_STOPPED {
			return nil
		}
		select {
		case <-news:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// Act implements guestv1.GuestServer.
func (s *Server) Act(ctx context.Context, r *guestv1.ActRequest) (*guestv1.ActResponse, error) {
	if _, err := s.negotiate(r.GetProtocol()); err != nil {
		return nil, err
	}
	var err error
	answer := &guestv1.ActResponse{}
	switch act := r.GetAct().(type) {
	case *guestv1.ActRequest_Shutdown:
		answer.Again, err = s.guest.PressPower(ctx)
	case *guestv1.ActRequest_Kill:
		err = s.guest.Kill(ctx, time.Now())
	case *guestv1.ActRequest_Pause:
		err = s.guest.Pause(ctx)
	case *guestv1.ActRequest_Unpause:
		err = s.guest.Resume(ctx)
	case *guestv1.ActRequest_DumpMemory:
		err = s.guest.DumpMemory(orderOf(act.DumpMemory), s.dumps)
	case *guestv1.ActRequest_StopDump:
		s.guest.StopDump()
	default:
		return nil, status.Error(codes.InvalidArgument, "no act, or one that is not known here")
	}
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, guest.Line(err.Error()))
	}
	return answer, nil
}

var phases = map[driver.Phase]guestv1.State_Phase{
	driver.Absent: guestv1.State_PHASE_NOT_STARTED, driver.Defined: guestv1.State_PHASE_NOT_STARTED,
	driver.Running: guestv1.State_PHASE_RUNNING, driver.Paused: guestv1.State_PHASE_PAUSED,
	driver.ShuttingDown: guestv1.State_PHASE_SHUTTING_DOWN, driver.Ended: guestv1.State_PHASE_STOPPED,
}

var reasons = map[driver.Why]guestv1.State_StopReason{
	driver.Shutdown: guestv1.State_STOP_REASON_SHUTDOWN, driver.Destroyed: guestv1.State_STOP_REASON_DESTROYED,
	driver.Crashed: guestv1.State_STOP_REASON_CRASHED, driver.Failed: guestv1.State_STOP_REASON_FAILED,
}

func (s *Server) state() *guestv1.State {
	r, _ := s.guest.Report()
	d := <-s.devices
	s.devices <- d
	state := &guestv1.State{
		Phase: phases[r.State.Phase], StopReason: reasons[r.State.Why], Machine: r.State.Machine, Disks: d.disks, Nics: d.nics,
		Message: r.Message, Agent: agentOf(r.Agent), ToldToEnd: r.Told, Dump: dumpOf(r.Dump),
	}
	if c := r.Credentials; c != nil {
		state.Credentials = &guestv1.Credentials{Problem: c.Problem}
	}
	if !r.State.Started.IsZero() {
		state.Started = timestamppb.New(r.State.Started)
	}
	return state
}
