package virtctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/bundles"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/validate"
	"virtstack.io/virtstack/virtctl/schema"
)

// exit is an error that ends virtctl with a code of its own. Its text, if there is one, is printed.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

const (
	invalid = 1
	usage   = 2
)

// finding is one thing that is wrong, as -o json prints it.
type finding struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Object  string `json:"object,omitempty"`
	Field   string `json:"field,omitempty"`
	Value   any    `json:"value,omitempty"`
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"`
}

func (f finding) String() string {
	text := f.File
	if f.Line > 0 {
		text += fmt.Sprintf(":%d", f.Line)
	}
	for _, part := range []string{f.Object, f.Field} {
		if part != "" {
			text += ": " + part
		}
	}
	if f.Warning {
		text += ": warning"
	}
	return text + ": " + f.Message
}

// report is what validate found, as -o json prints it.
type report struct {
	Objects  int       `json:"objects"`
	Skipped  int       `json:"skipped"`
	Findings []finding `json:"findings"`
}

func (r report) errors() int {
	n := 0
	for _, f := range r.Findings {
		if !f.Warning {
			n++
		}
	}
	return n
}

func validateCommand(e *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate (-f FILE | -k DIR)...",
		Short: "Tell whether a cluster would take manifests, without asking one",
		Long: "Tell whether a cluster of this release would take manifests, without asking one: the definitions of the kinds\n" +
			"and the rules of admission are compiled in. A KubeVirt among the manifests gives the feature gates and the rest\n" +
			"of the configuration; without one the defaults hold. Objects of other kinds are skipped.\n\n" +
			"Exit codes: 0 all valid, 1 something is invalid, 2 wrong usage or a file that can't be read.",
	}
	e.judges(cmd, check)
	return cmd
}

// judges makes a command one that reads manifests and prints what judge finds: with flags for both, and with exit codes
// 0, 1 if there are errors among the findings, and 2 if it could not begin.
func (e *environment) judges(cmd *cobra.Command, judge func(context.Context, []manifest) (report, error)) {
	var in sources
	output := ""
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return exit{usage, fmt.Errorf("%s takes no arguments, got %q: give files with -f and kustomizations with -k", cmd.Name(), args[0])}
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if output != "" && output != "json" {
			return exit{usage, fmt.Errorf("--output %q: must be json or be left out", output)}
		}
		if err := in.bases.check(); err != nil {
			return err
		}
		manifests, err := in.read(cmd.Context(), e.In)
		if err != nil {
			return exit{usage, err}
		}
		found, err := judge(cmd.Context(), manifests)
		if err != nil {
			return err
		}
		return e.print(found, output)
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit{usage, err} })
	cmd.Flags().StringArrayVarP(&in.files, "filename", "f", nil, "file or directory of manifests, - for the standard input; may be repeated")
	cmd.Flags().StringArrayVarP(&in.kustomizations, "kustomize", "k", nil, "directory with a kustomization, built without the network but for remote bases; may be repeated")
	in.bases.bind(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, or nothing for lines that people read")
}

func (e *environment) print(r report, output string) error {
	if output == "json" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		if _, err := fmt.Fprintln(e.Out, string(text)); err != nil {
			return err
		}
	} else {
		for _, f := range r.Findings {
			if _, err := fmt.Fprintln(e.Out, f); err != nil {
				return err
			}
		}
		_, _ = fmt.Fprintf(e.ErrOut, "%d objects checked, %d of other kinds skipped, %d errors\n", r.Objects, r.Skipped, r.errors())
	}
	if r.errors() > 0 {
		return exit{code: invalid}
	}
	return nil
}

// definitions are those of this release, read once.
var definitions = sync.OnceValues(func() (*schema.Definitions, error) { return schema.Read(bundles.Definitions()) })

// check judges manifests under the configuration that is among them.
func check(ctx context.Context, manifests []manifest) (report, error) {
	definitions, err := definitions()
	if err != nil {
		return report{}, err
	}
	r, c := report{Findings: []finding{}}, configurationOf(manifests)
	for _, m := range manifests {
		if m.err != nil {
			r.Findings = append(r.Findings, finding{File: m.file, Line: m.line, Message: m.err.Error()})
			continue
		}
		if !definitions.Knows(m.object.GroupVersionKind()) {
			r.Skipped++
			continue
		}
		r.Objects++
		found, err := judge(ctx, definitions, m, nil, c)
		if err != nil {
			return r, err
		}
		r.Findings = append(r.Findings, found...)
	}
	return r, nil
}

// judge does what the API server does: the shape first, then, if that is right, the rules; old is the JSON of what the
// object was before, nil for one that is new.
func judge(ctx context.Context, definitions *schema.Definitions, m manifest, old []byte, c config.Config) ([]finding, error) {
	name := m.String()
	errs, err := definitions.Check(ctx, m.object)
	if err != nil {
		return nil, err
	}
	var verdict validate.Verdict
	if len(errs) == 0 {
		text, err := schema.JSON(m.object)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
		verdict, err = validate.Object(m.object.GroupVersionKind().GroupKind(), text, old, c)
		if err != nil {
			errs = append(errs, field.Invalid(nil, field.OmitValueType{}, err.Error()))
		}
		errs = append(errs, verdict.Errors...)
	}
	var found []finding
	for _, err := range errs {
		f := finding{File: m.file, Line: m.lineOf(err.Field), Object: name, Field: err.Field, Message: err.ErrorBody()}
		if _, omitted := err.BadValue.(field.OmitValueType); !omitted {
			f.Value = err.BadValue
		}
		found = append(found, f)
	}
	for _, text := range verdict.Warnings {
		found = append(found, finding{File: m.file, Line: m.line, Object: name, Message: text, Warning: true})
	}
	return found, nil
}

// configurationOf is that of the first KubeVirt that can be read. One that is wrong is told about where it is judged.
func configurationOf(manifests []manifest) config.Config {
	for _, m := range manifests {
		if m.err != nil || m.object.GroupVersionKind().GroupKind() != v1.KubeVirtGroupVersionKind.GroupKind() {
			continue
		}
		text, err := schema.JSON(m.object)
		kv := &v1.KubeVirt{}
		if errors.Join(err, json.Unmarshal(text, kv)) == nil {
			return config.From(kv)
		}
	}
	return config.From(nil)
}
