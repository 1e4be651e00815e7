package virtctl

import (
	"context"
	"io/fs"

	"github.com/spf13/pflag"

	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/gitops/source"
)

// bases are the repositories whose directories a kustomization may use as bases.
type bases []string

func (b *bases) bind(flags *pflag.FlagSet) {
	flags.StringArrayVar((*[]string)(b), "allow-remote-bases", nil,
		"URL of a repository, or of what repositories lie beneath, whose directories may be bases; each by a whole commit; may be repeated")
}

func (b bases) check() error {
	for _, allowed := range b {
		if err := build.CheckBase(allowed); err != nil {
			return exit{usage, err}
		}
	}
	return nil
}

// objects builds a directory of files. Only bases are fetched, without credentials.
func (b bases) objects(ctx context.Context, files fs.FS, dir string) ([]build.Object, error) {
	fetch := func(url, commit string) (build.Base, error) { return source.Pinned(ctx, url, commit) }
	return build.Overlaid(ctx, files, dir, build.DefaultLimits, build.Overlay{Bases: build.Bases{Allowed: b, Fetch: fetch}})
}
