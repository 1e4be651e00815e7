package virtctl

import (
	"context"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// call is a verb: what the server is sent, and what the user reads once it has taken it.
type call struct {
	verb    string
	options any
	query   url.Values
	dryRun  bool
}

// instanceVerb calls a verb of the VMI that arg names: of the one of that VM, where it names a VM.
func (e *environment) instanceVerb(ctx context.Context, arg string, c call) error {
	server, t, err := e.connect(arg)
	if err != nil {
		return err
	}
	kind := t.kind
	t.kind = kindVMI
	if err := server.put(ctx, t, c); err != nil {
		t.kind = kind
		return e.verbError(ctx, server, t, c.verb, err)
	}
	return e.scheduled("VMI", t, c)
}

// scheduled says that the server has taken a call.
func (e *environment) scheduled(what string, t target, c call) error {
	if c.dryRun {
		_, _ = fmt.Fprintln(e.Out, "Dry Run execution")
	}
	_, err := fmt.Fprintf(e.Out, "%s %s was scheduled to %s\n", what, t.name, c.verb)
	return err
}

// verb calls a verb of the VM that arg names.
func (e *environment) verb(ctx context.Context, arg string, c call) error {
	server, t, err := e.connect(arg)
	if err != nil {
		return err
	}
	if t.kind == kindVMI {
		return fmt.Errorf("%s works on virtual machines: want vm/%s, not a VirtualMachineInstance", c.verb, t.name)
	}
	if err := server.put(ctx, t, c); err != nil {
		return e.verbError(ctx, server, t, c.verb, err)
	}
	return e.scheduled("VM", t, c)
}

// dryRunOf is the wire form of --dry-run.
func dryRunOf(on bool) []string {
	if on {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// graceFlag is --grace-period with --force: seconds, -1 for none given. Force means zero.
type graceFlag struct {
	seconds int64
	force   bool
}

func (g graceFlag) value() (*int64, error) {
	switch {
	case g.force && g.seconds > 0:
		return nil, fmt.Errorf("--force leaves the guest no time: it goes with --grace-period=0, not %d", g.seconds)
	case g.force:
		zero := int64(0)
		return &zero, nil
	case g.seconds < -1:
		return nil, fmt.Errorf("--grace-period: Invalid value: %d: must be at least 0", g.seconds)
	case g.seconds == -1:
		return nil, nil
	}
	return &g.seconds, nil
}
