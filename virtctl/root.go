// Package virtctl is the command line: it works with virtual machines as the user that the kubeconfig names, through
// the same API that everything else uses.
package virtctl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

// Execute runs virtctl and returns its exit code: 0 if the command did what was asked, 1 if not; a console also ends
// with 1 if its connection was lost, and validate with 2 if it could not begin; plan has codes of its own.
func Execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return Run(ctx, streams, os.Args)
}

// Run runs virtctl with arguments, of which the first is the name it was called by.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	root := command(streams, args[0])
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	code := 1
	if e := (exit{}); errors.As(err, &e) {
		code = e.code
	}
	if err != nil && err.Error() == "" {
		return code
	}
	if err != nil {
		_, _ = fmt.Fprintln(streams.ErrOut, "Error: "+explain(err, root.Annotations[cobra.CommandDisplayNameAnnotation]))
		return code
	}
	return 0
}

func command(streams genericiooptions.IOStreams, called string) *cobra.Command {
	root := &cobra.Command{
		Use:           "virtctl",
		Short:         "Work with virtual machines on Kubernetes",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: displayName(called)},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	connection := genericclioptions.NewConfigFlags(true)
	connection.AddFlags(root.PersistentFlags())
	logs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logs)
	root.PersistentFlags().AddGoFlag(logs.Lookup("v"))

	env := &environment{IOStreams: streams, connection: connection, name: displayName(called)}
	for _, c := range []func(*environment) *cobra.Command{consoleCommand, startCommand, stopCommand, restartCommand, pauseCommand, unpauseCommand, memoryDumpCommand, expandCommand, validateCommand, lintCommand, planCommand, uninstallCommand, versionCommand} {
		root.AddCommand(c(env))
	}
	return root
}

// environment is what every command has: where it reads and prints, how it reaches the API server, and the name it
// was called by, for the commands that it recommends.
type environment struct {
	genericiooptions.IOStreams
	connection *genericclioptions.ConfigFlags
	name       string
}

// displayName is the name of a plugin as its user types it.
func displayName(called string) string {
	base := strings.TrimSuffix(filepath.Base(called), ".exe")
	if plugin, ok := strings.CutPrefix(base, "kubectl-"); ok {
		return "kubectl " + plugin
	}
	return "virtctl"
}

// one takes exactly one argument, and says which.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return fmt.Errorf("%s takes one argument, the %s, and got %d (see %s --help)", cmd.CommandPath(), what, len(args), cmd.CommandPath())
	}
}

// hint is an error whose text says what to do next.
type hint struct {
	err  error
	text string
}

func (h hint) Error() string { return h.text }
func (h hint) Unwrap() error { return h.err }

func hinted(err error, format string, args ...any) error {
	return hint{err, fmt.Sprintf(format, args...)}
}

// isHint reports whether the error says already what to do.
func isHint(err error) bool {
	var h hint
	return errors.As(err, &h)
}
