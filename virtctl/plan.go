package virtctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/gitops/plan"
	"virtstack.io/virtstack/gitops/source"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/virtctl/schema"
)

// Exit codes of plan, beside 0 and 1.
const (
	disruptive = 2
	refused    = 3
)

// worktree is what the files of a directory as they are, committed or not, are called.
const worktree = "worktree"

// planning is what plan was asked for.
type planning struct {
	directory, from, to, output string
	policies                    sources
	bases                       bases
	user                        string
	server, offline             bool
	manager                     string
}

func planCommand(e *environment) *cobra.Command {
	var p planning
	cmd := &cobra.Command{
		Use:   "plan (PATH | -k DIR) [--from REV] [--to REV]",
		Short: "Show what a commit will do to virtual machines before it lands",
		Long: "Show what a commit will do before it lands: both sides are built as a Bundle builds them, without the network,\n" +
			"but for the bases that --allow-remote-bases lets it fetch, and for each object it is said what happens to guests and data, which fields cause it, what is refused and what\n" +
			"capacity is asked for. From HEAD to the files as they are, unless --from and --to say otherwise. No cluster is asked:\n" +
			"a VM of which the spec wants a guest counts as running. Policies are those among the files or of --policies, which\n" +
			"refuse; without either, of this release's it is told which the change breaks.\n\n" +
			"With --server the cluster of the kubeconfig is asked for what it has, and by a dry run for what it would make of\n" +
			"each object; the revisions then only say what is to be deleted.\n\n" +
			"Exit codes: 0 nothing disruptive, 2 a restart, stop, replacement or deletion, 3 something is refused, 1 an error.",
		Example: "  " + e.name + " plan vms\n  " + e.name + " plan -k overlays/prod --from origin/main -o markdown",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.take(args); err != nil {
				return err
			}
			in, err := e.input(cmd.Context(), p)
			if err != nil {
				return err
			}
			return e.planned(plan.For(in), p.output)
		},
	}
	cmd.Flags().StringVarP(&p.directory, "kustomize", "k", "", "directory with a kustomization or with manifests, as PATH")
	cmd.Flags().StringVar(&p.from, "from", "", "the revision before, as git names it (default HEAD)")
	cmd.Flags().StringVar(&p.to, "to", "", "the revision after, as git names it (default: the files as they are)")
	cmd.Flags().StringVarP(&p.output, "output", "o", "", "json, yaml, markdown, or nothing for a table")
	p.bases.bind(cmd.Flags())
	cmd.Flags().StringArrayVar(&p.policies.kustomizations, "policies", nil, "directory with a kustomization of policies, bindings and parameters that are in force; may be repeated")
	cmd.Flags().StringVar(&p.user, "as-user", "kubernetes-admin", "name of the user who would apply the objects, for policies that let some through")
	cmd.Flags().BoolVar(&p.server, "server", false, "ask the cluster: what it has against what it would make of the objects")
	cmd.Flags().BoolVar(&p.offline, "offline", false, "ask no cluster (the default)")
	cmd.Flags().StringVar(&p.manager, "field-manager", "", "with --server, who applies (default: who applied the object that is there, else virtctl)")
	cmd.MarkFlagsMutuallyExclusive("server", "offline")
	return cmd
}

// input gathers what a plan is made of.
func (e *environment) input(ctx context.Context, p planning) (plan.Input, error) {
	in, err := sides(ctx, p)
	if err != nil {
		return in, err
	}
	if p.server {
		if in, err = e.ask(ctx, p, in); err != nil || len(p.policies.kustomizations) == 0 {
			return in, err // the cluster has judged by its own
		}
	} else if err := judgeSides(ctx, in); err != nil {
		return in, err
	}
	by, err := p.policed(ctx, in, *e.connection.Namespace)
	if err != nil {
		return in, err
	}
	return in, by.judge(ctx, in)
}

// take checks what was asked for.
func (p *planning) take(args []string) error {
	switch {
	case len(args) > 1, len(args) == 1 && p.directory != "", len(args) == 0 && p.directory == "":
		return errors.New("plan takes one directory: as PATH or with -k")
	case p.output != "" && p.output != "json" && p.output != "yaml" && p.output != "markdown":
		return fmt.Errorf("--output %q: must be json, yaml or markdown, or be left out", p.output)
	}
	if len(args) == 1 {
		p.directory = args[0]
	}
	if p.from == "" {
		p.from = "HEAD"
	}
	if p.to == "" {
		p.to = worktree
	}
	return p.bases.check()
}

// sides builds both.
func sides(ctx context.Context, p planning) (plan.Input, error) {
	at, err := filepath.Abs(p.directory)
	if err != nil {
		return plan.Input{}, err
	}
	if resolved, err := filepath.EvalSymlinks(at); err == nil {
		at = resolved // one that is gone from the worktree may be in a commit
	}
	t := tree{path: at, top: repository(at), bases: p.bases}
	if t.local, err = source.OpenLocal(t.top); err != nil {
		return plan.Input{}, err
	}
	to, err := t.objects(ctx, p.to)
	if errors.Is(err, build.ErrRefused) {
		return plan.Input{}, exit{refused, err}
	}
	if err != nil {
		return plan.Input{}, err
	}
	from, err := t.objects(ctx, p.from)
	if err != nil {
		return plan.Input{}, err
	}
	if from.absent && to.absent {
		return plan.Input{}, fmt.Errorf("%s is neither in %s nor in %s", p.directory, from.Name, to.Name)
	}
	return plan.Input{From: from.Side, To: to.Side}, nil
}

// tree is a directory of a repository.
type tree struct {
	path, top string
	local     *source.Local
	bases     bases
}

// built is one side.
type built struct {
	plan.Side
	absent bool // the directory isn't there
}

// objects builds the directory as it is in a revision.
func (t tree) objects(ctx context.Context, revision string) (built, error) {
	side := built{Side: plan.Side{Name: revision}}
	dir, err := filepath.Rel(t.top, t.path)
	if err != nil {
		return side, err
	}
	var files fs.FS
	if revision == worktree {
		root, err := os.OpenRoot(t.top)
		if err != nil {
			return side, fmt.Errorf("reading manifests: %w", err)
		}
		defer func() { _ = root.Close() }() // it was only read
		files = root.FS()
	} else {
		hash := ""
		if files, hash, err = t.local.Commit(revision); err != nil {
			return side, err
		}
		side.Name = hash[:12]
	}
	dir = filepath.ToSlash(dir)
	if _, err := fs.Stat(files, dir); errors.Is(err, fs.ErrNotExist) {
		side.absent = true
		return side, nil
	}
	objects, err := t.bases.objects(ctx, files, dir)
	if err != nil {
		return side, fmt.Errorf("%s: %w", side.Name, err)
	}
	for _, o := range objects {
		side.Objects = append(side.Objects, plan.Object{Unstructured: o.Unstructured, File: o.File})
	}
	return side, nil
}

// judgeSides notes what of the objects that change a cluster would not take.
func judgeSides(ctx context.Context, in plan.Input) error {
	definitions, err := definitions()
	if err != nil {
		return err
	}
	var all []manifest
	for _, o := range in.To.Objects {
		all = append(all, manifest{object: o.Unstructured})
	}
	c := configurationOf(all)
	before := map[string]plan.Object{}
	for _, o := range in.From.Objects {
		before[identity(o)] = o
	}
	for n := range in.To.Objects {
		o := &in.To.Objects[n]
		if !definitions.Knows(o.GroupVersionKind()) {
			continue
		}
		if err := judgeChange(ctx, definitions, o, before[identity(*o)], c); err != nil {
			return err
		}
	}
	return nil
}

func identity(o plan.Object) string {
	return o.GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
}

func judgeChange(ctx context.Context, definitions *schema.Definitions, o *plan.Object, was plan.Object, c config.Config) error {
	var old []byte
	if was.Unstructured != nil {
		text, err := schema.JSON(was.Unstructured)
		if err != nil {
			return fmt.Errorf("writing %s: %w", identity(was), err)
		}
		now, err := schema.JSON(o.Unstructured)
		if err != nil || string(now) == string(text) {
			return err
		}
		old = text
	}
	copied := manifest{object: o.DeepCopy()} // the check fills in defaults
	found, err := judge(ctx, definitions, copied, old, c)
	if err != nil {
		return err
	}
	for _, f := range found {
		if !f.Warning {
			o.Refused = append(o.Refused, plan.Refusal{Field: f.Field, Message: f.Message})
		}
	}
	return nil
}
