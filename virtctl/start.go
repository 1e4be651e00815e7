package virtctl

import (
	"github.com/spf13/cobra"
	v1 "kubevirt.io/api/core/v1"
)

func startCommand(e *environment) *cobra.Command {
	o, dryRun, override := v1.StartOptions{}, false, overrideFlags{}
	cmd := &cobra.Command{
		Use:     "start VM",
		Short:   "Start a virtual machine",
		Example: "  " + e.name + " start web\n  " + e.name + " start vm/web/shop",
		Args:    one("virtual machine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := override.query()
			if err != nil {
				return err
			}
			o.DryRun = dryRunOf(dryRun)
			return e.verb(cmd.Context(), args[0], call{"start", o, query, dryRun})
		},
	}
	cmd.Flags().BoolVar(&o.Paused, "paused", false, "leave the guest paused at its first instruction")
	override.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "ask the server, change nothing")
	return cmd
}
