package virtctl

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// overrideFlags are --override, --for and --reason.
type overrideFlags struct {
	on     bool
	lasts  time.Duration
	reason string
}

func (o *overrideFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.on, "override", false, "for a while, in place of what Git says; spec stays as it is")
	cmd.Flags().DurationVar(&o.lasts, "for", 0, "how long the override holds, such as 30m or 2h")
	cmd.Flags().StringVar(&o.reason, "reason", "", "why Git is overridden, for those who look at the VM")
}

// query is the wire form; nil where there is no override.
func (o *overrideFlags) query() (url.Values, error) {
	switch {
	case !o.on && (o.lasts != 0 || o.reason != ""):
		return nil, errors.New("--for and --reason go with --override")
	case !o.on:
		return nil, nil
	case o.lasts <= 0:
		return nil, fmt.Errorf("--for: Invalid value: %q: --override must say how long it holds, such as --for 2h", o.lasts)
	case o.reason == "":
		return nil, errors.New("--reason: Required value: --override must say why")
	}
	return url.Values{"override": {"true"}, "for": {o.lasts.String()}, "reason": {o.reason}}, nil
}
