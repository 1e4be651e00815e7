package virtctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"virtstack.io/virtstack/kube/buildid"
	"virtstack.io/virtstack/machine/release"
)

func versionCommand(e *environment) *cobra.Command {
	own := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			here := release.Info(buildid.Own())
			if _, err := fmt.Fprintln(e.Out, "Client Version: "+long(here)); err != nil || own {
				return err
			}
			server, err := e.client()
			if err != nil {
				return err
			}
			there, err := server.version(cmd.Context())
			if err != nil {
				return err
			}
			if minor(here.GitVersion) != minor(there.GitVersion) {
				_, _ = fmt.Fprintf(e.ErrOut, "Warning: client %s and server %s differ: use a client of the server's release\n", here.GitVersion, there.GitVersion)
			}
			_, err = fmt.Fprintln(e.Out, "Server Version: "+long(there))
			return err
		},
	}
	cmd.Flags().BoolVarP(&own, "client", "c", false, "print the version of this program only")
	return cmd
}

// version asks for the server's version at the group version that it prefers.
func (c *client) version(ctx context.Context) (version.Info, error) {
	group, info := metav1.APIGroup{}, version.Info{}
	if err := c.get(ctx, &group, subresources); err != nil {
		return info, err
	}
	return info, c.get(ctx, &info, "/apis/"+group.PreferredVersion.GroupVersion+"/version")
}

// long is one line. What follows a + in the version is of the build: it differs where the program does.
func long(i version.Info) string {
	parts := []string{i.GitVersion}
	if i.GitCommit != "" {
		commit := "commit " + i.GitCommit
		if i.GitTreeState == "dirty" {
			commit += " and changes that aren't committed"
		}
		parts = append(parts, commit)
	}
	if i.BuildDate != "" {
		parts = append(parts, "of "+i.BuildDate)
	}
	return strings.Join(append(parts, i.GoVersion, i.Platform), ", ")
}

// minor is the major and minor part of a semantic version.
func minor(v string) string {
	parts := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
