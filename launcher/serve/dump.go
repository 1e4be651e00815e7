package serve

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/guest"
)

func orderOf(d *guestv1.DumpMemory) guest.Order {
	return guest.Order{Volume: d.GetVolume(), File: d.GetFile(), Patience: time.Duration(d.GetTimeout()) * time.Second, Bytes: d.GetBytes()}
}

func dumpOf(d *guest.Dump) *guestv1.Dump {
	if d == nil {
		return nil
	}
	out := &guestv1.Dump{Volume: d.Volume, File: d.File, Running: d.Running, Problem: d.Problem}
	if !d.Ended.IsZero() {
		out.Ended = timestamppb.New(d.Ended)
	}
	return out
}
