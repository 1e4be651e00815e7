package virtctl

import (
	"fmt"

	"github.com/spf13/cobra"
	v1 "kubevirt.io/api/core/v1"
)

func pauseCommand(e *environment) *cobra.Command {
	return instanceCommand(e, "pause", "Stop the CPUs of a virtual machine", func(dryRun []string) any { return v1.PauseOptions{DryRun: dryRun} })
}

func unpauseCommand(e *environment) *cobra.Command {
	return instanceCommand(e, "unpause", "Let a paused virtual machine go on", func(dryRun []string) any { return v1.UnpauseOptions{DryRun: dryRun} })
}

// instanceCommand is the command of a verb of a VMI.
func instanceCommand(e *environment, verb, short string, options func(dryRun []string) any) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use:     verb + " (vm|vmi) NAME",
		Short:   short,
		Example: fmt.Sprintf("  %[1]s %[2]s vm web\n  %[1]s %[2]s vmi/web/shop", e.name, verb),
		Args:    kindAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.instanceVerb(cmd.Context(), joined(args), call{verb, options(dryRunOf(dryRun)), nil, dryRun})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "ask the server, change nothing")
	return cmd
}

// kindAndName takes a target as one argument, or its kind and its name as two.
func kindAndName(cmd *cobra.Command, args []string) error {
	if len(args) == 1 || len(args) == 2 {
		return nil
	}
	return fmt.Errorf("%s takes vm or vmi and a name, and got %d arguments (see %s --help)", cmd.CommandPath(), len(args), cmd.CommandPath())
}

func joined(args []string) string {
	if len(args) == 2 {
		return args[0] + "/" + args[1]
	}
	return args[0]
}
