package virtctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "kubevirt.io/api/core/v1"
)

// tryEvery is how often a console of a guest that is not there yet is tried.
const tryEvery = time.Second

func consoleCommand(e *environment) *cobra.Command {
	minutes := 0
	cmd := &cobra.Command{
		Use:   "console VMI",
		Short: "Open the serial console of a virtual machine",
		Long: "Open the serial console of a virtual machine; Ctrl-] leaves it. A console that is opened later takes over.\n\n" +
			"Input and output may be pipes: once the input has ended, the console is left as soon as the guest is silent.",
		Example: "  " + e.name + " console web\n  printf 'root\\n' | " + e.name + " console vm/web/shop",
		Args:    one("virtual machine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.console(cmd.Context(), args[0], time.Duration(minutes)*time.Minute)
		},
	}
	cmd.Flags().IntVar(&minutes, "timeout", 5, "minutes to wait for the guest to run")
	return cmd
}

func (e *environment) console(ctx context.Context, arg string, timeout time.Duration) error {
	server, t, err := e.connect(arg)
	if err != nil {
		return err
	}
	conn, err := e.openWhenRunning(ctx, server, t, timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	e.say("Connected to the console of %s. Ctrl-] leaves it.", t.name)
	return e.left(t, attach(ctx, conn, e.In, e.Out))
}

// left says how a console has ended and how to come back.
func (e *environment) left(t target, err error) error {
	var lost lostError
	again := fmt.Sprintf("Connect again with: %s console %s -n %s", e.name, t.name, t.namespace)
	switch {
	case err == nil:
		e.say("\nLeft the console of %s.", t.name)
	case errors.Is(err, errClosed):
		e.say("\nThe console of %s was closed by the other side. %s", t.name, again)
		return nil
	case errors.As(err, &lost):
		return hinted(err, "%v\nThe guest is not affected. %s", err, again)
	}
	return err
}

// openWhenRunning opens the console, and waits for the guest where it is on its way.
func (e *environment) openWhenRunning(ctx context.Context, c *client, t target, timeout time.Duration) (*websocket.Conn, error) {
	limit, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	said := v1.VirtualMachinePrintableStatus("")
	for {
		conn, err := c.open(ctx, t, "console")
		if err == nil || !notYet(err) {
			return conn, err
		}
		status, err := e.onItsWay(ctx, c, t, err)
		if err != nil {
			return nil, err
		}
		if status != said {
			e.say("Waiting for VM %s: %s", t.name, status)
			said = status
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.Done():
			return nil, hinted(err, "VM %s is %s after %s.\nLook at: kubectl describe vm %s -n %s", t.name, status, timeout, t.name, t.namespace)
		}
	}
}

// notYet reports whether a console is refused because there is no guest.
func notYet(err error) bool {
	err = cause(err)
	return apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) && err.Error() == "VMI is not running"
}

// onItsWay returns the status of a VM whose guest will run, and an error for one whose guest won't.
func (e *environment) onItsWay(ctx context.Context, c *client, t target, refusal error) (v1.VirtualMachinePrintableStatus, error) {
	vm, err := c.vm(ctx, t)
	switch {
	case apierrors.IsNotFound(err) && apierrors.IsNotFound(cause(refusal)):
		return "", e.notFound(ctx, c, t, "virtualmachine", refusal)
	case err != nil: // a VMI without a VM, or a VM that may not be read
		return "not running yet", nil
	case vm.Status.PrintableStatus == v1.VirtualMachineStatusStopped:
		return "", hinted(refusal, "VM %s is %s.%s", t.name, vm.Status.PrintableStatus, e.startHint(t, vm))
	case vm.Status.PrintableStatus == "":
		return v1.VirtualMachineStatusStarting, nil
	}
	return vm.Status.PrintableStatus, nil
}

// say prints a line for people, apart from the guest's output.
func (e *environment) say(format string, args ...any) {
	_, _ = fmt.Fprintf(e.ErrOut, format+"\n", args...)
}
