package virtctl

import (
	"github.com/spf13/cobra"
	v1 "kubevirt.io/api/core/v1"
)

func stopCommand(e *environment) *cobra.Command {
	grace, dryRun, override := graceFlag{}, false, overrideFlags{}
	cmd := &cobra.Command{
		Use:   "stop VM",
		Short: "Stop a virtual machine",
		Example: "  " + e.name + " stop web\n  " + e.name + " stop vm/web/shop --grace-period 10\n  " + e.name + " stop web --force\n  " +
			e.name + ` stop web --override --for 2h --reason "the disk is checked"`,
		Args: one("virtual machine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := grace.value()
			if err != nil {
				return err
			}
			query, err := override.query()
			if err != nil {
				return err
			}
			o := v1.StopOptions{GracePeriod: seconds, DryRun: dryRunOf(dryRun)}
			return e.verb(cmd.Context(), args[0], call{"stop", o, query, dryRun})
		},
	}
	cmd.Flags().Int64Var(&grace.seconds, "grace-period", -1, "seconds that the guest has to shut down; -1: what the VM says")
	cmd.Flags().BoolVar(&grace.force, "force", false, "turn the guest off at once, as if its cord were pulled")
	override.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "ask the server, change nothing")
	return cmd
}
