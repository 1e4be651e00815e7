package virtctl

import (
	"github.com/spf13/cobra"
	v1 "kubevirt.io/api/core/v1"
)

func stopCommand(e *environment) *cobra.Command {
	grace, dryRun := graceFlag{}, false
	cmd := &cobra.Command{
		Use:     "stop VM",
		Short:   "Stop a virtual machine",
		Example: "  " + e.name + " stop web\n  " + e.name + " stop vm/web/shop --grace-period 10\n  " + e.name + " stop web --force",
		Args:    one("virtual machine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := grace.value()
			if err != nil {
				return err
			}
			return e.verb(cmd.Context(), args[0], call{"stop", v1.StopOptions{GracePeriod: seconds, DryRun: dryRunOf(dryRun)}, dryRun})
		},
	}
	cmd.Flags().Int64Var(&grace.seconds, "grace-period", -1, "seconds that the guest has to shut down; -1: what the VM says")
	cmd.Flags().BoolVar(&grace.force, "force", false, "turn the guest off at once, as if its cord were pulled")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "ask the server, change nothing")
	return cmd
}
