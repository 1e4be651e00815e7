// Command cluster builds, starts and removes the development cluster: Kubernetes, etcd, containerd and CoreDNS from Go
// modules, with one or more nodes in namespaces of this machine. It works in the checkout that it is called in:
//
//	go run -C ci/cluster . up
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"virtstack.io/virtstack/ci/cluster/build"
	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/node"
)

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return 0
}

// action is what a subcommand does in a checkout, telling people on out.
type action func(ctx context.Context, d layout.Dir, out io.Writer, args []string) error

func command() *cobra.Command {
	root := &cobra.Command{
		Use: "cluster", Short: "The development cluster: Kubernetes on this machine, from source",
		SilenceUsage: true, SilenceErrors: true,
	}
	var nodes int
	up := sub("up", "Build what is missing and start the cluster", cobra.NoArgs,
		func(ctx context.Context, d layout.Dir, out io.Writer, _ []string) error {
			return up(ctx, d, out, nodes)
		})
	up.Flags().IntVar(&nodes, "nodes", 1, fmt.Sprintf("how many nodes, 1 to %d; more than run now are added", layout.MaxNodes))
	var purge bool
	down := sub("down", "Stop the cluster and leave no trace of it but its state", cobra.NoArgs,
		func(ctx context.Context, d layout.Dir, out io.Writer, _ []string) error {
			return down(ctx, d, out, purge)
		})
	down.Flags().BoolVar(&purge, "purge", false, "drop its state as well, but not programs and images")
	root.AddCommand(
		sub("build", "Build programs and images", cobra.NoArgs,
			func(ctx context.Context, d layout.Dir, out io.Writer, _ []string) error {
				return build.All(ctx, d, out)
			}),
		up, down,
		sub("restart NAME", "Kill a program of the control plane, such as kube-apiserver, and start it again", cobra.ExactArgs(1), restart),
		sub("check", "Say what a stopped cluster left behind; fails if there is anything", cobra.NoArgs,
			func(_ context.Context, d layout.Dir, out io.Writer, _ []string) error { return check(d, out) }),
		sub("import IMAGE.tar...", "Import OCI archives into every node, and into those that start later", cobra.MinimumNArgs(1), importImages),
		&cobra.Command{Use: "node-init", Hidden: true, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return node.Init() }},
	)
	return root
}

// sub is a subcommand that works in a checkout as root.
func sub(use, short string, args cobra.PositionalArgs, do action) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(c *cobra.Command, args []string) error {
		if os.Geteuid() != 0 {
			return errors.New("this needs root: it makes namespaces, links and mounts")
		}
		d, err := layout.Find()
		if err != nil {
			return err
		}
		return do(c.Context(), d, c.OutOrStdout(), args)
	}}
}
