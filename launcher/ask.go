package launcher

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// ask is a probe of the guest by its agent, which the kubelet runs beside the launcher: whether the agent answers, or how
// the guest's command in args ends. It returns 0 for a guest that is well, else 1 or the command's exit code, and writes
// what people want to know to out.
func ask(args []string, socket string, out io.Writer) int {
	fs := flag.NewFlagSet("virt-launcher ask", flag.ContinueOnError)
	seconds := fs.Int("timeout-seconds", 1, "how long the guest may take")
	if err := fs.Parse(args); err != nil || *seconds < 1 {
		fs.Usage()
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*seconds)*time.Second)
	defer cancel()
	// A unix socket that only this user may open.
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	defer conn.Close()
	answer, err := guestv1.NewGuestClient(conn).Probe(ctx, &guestv1.ProbeRequest{Protocol: guestv1.Protocol, Command: fs.Args()})
	if err != nil {
		fmt.Fprintln(out, status.Convert(err).Message())
		return 1
	}
	if answer.GetOutput() != "" {
		fmt.Fprintln(out, answer.GetOutput())
	}
	return int(answer.GetExitCode())
}

// askGuest asks this container's guest.
func askGuest(args []string) int { return ask(args, inRun(guestv1.GuestSocket), os.Stdout) }
