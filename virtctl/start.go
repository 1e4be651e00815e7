package virtctl

import (
	"github.com/spf13/cobra"
	v1 "kubevirt.io/api/core/v1"
)

func startCommand(e *environment) *cobra.Command {
	o, dryRun := v1.StartOptions{}, false
	cmd := &cobra.Command{
		Use:     "start VM",
		Short:   "Start a virtual machine",
		Example: "  " + e.name + " start web\n  " + e.name + " start vm/web/shop",
		Args:    one("virtual machine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.DryRun = dryRunOf(dryRun)
			return e.verb(cmd.Context(), args[0], call{"start", o, dryRun})
		},
	}
	cmd.Flags().BoolVar(&o.Paused, "paused", false, "leave the guest paused at its first instruction")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "ask the server, change nothing")
	return cmd
}
