package virtctl

import (
	"fmt"

	"github.com/spf13/cobra"
	v1 "kubevirt.io/api/core/v1"
)

func restartCommand(e *environment) *cobra.Command {
	grace, dryRun := graceFlag{}, false
	cmd := &cobra.Command{
		Use:     "restart VM",
		Short:   "Stop a virtual machine and start it anew",
		Example: "  " + e.name + " restart web\n  " + e.name + " restart vm/web/shop --force",
		Args:    one("virtual machine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := grace.value()
			if err != nil {
				return err
			}
			if seconds != nil && *seconds > 0 {
				return fmt.Errorf("--grace-period: Invalid value: %d: restart knows only 0, which turns the guest off at once", *seconds)
			}
			return e.verb(cmd.Context(), args[0], call{"restart", v1.RestartOptions{GracePeriodSeconds: seconds, DryRun: dryRunOf(dryRun)}, nil, dryRun})
		},
	}
	cmd.Flags().Int64Var(&grace.seconds, "grace-period", -1, "0 turns the guest off at once; -1: what the VM says")
	cmd.Flags().BoolVar(&grace.force, "force", false, "the same as --grace-period=0")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "ask the server, change nothing")
	return cmd
}
