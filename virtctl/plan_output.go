package virtctl

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/gitops/plan"
	"virtstack.io/virtstack/machine/change"
)

// planned prints a plan; the error holds the exit code.
func (e *environment) planned(r plan.Report, output string) error {
	text, err := rendered(r, output)
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	if _, err := fmt.Fprint(e.Out, text); err != nil {
		return err
	}
	switch {
	case r.Refused:
		return exit{code: refused}
	case r.Class.Disruptive():
		return exit{code: disruptive}
	}
	return nil
}

func rendered(r plan.Report, output string) (string, error) {
	switch output {
	case "json":
		text, err := json.MarshalIndent(r, "", "  ")
		return string(text) + "\n", err
	case "yaml":
		text, err := yaml.Marshal(r)
		return string(text), err
	case "markdown":
		return markdown(r), nil
	}
	return table(r), nil
}

// table is one line for each object, then what there is to say of each.
func table(r plan.Report) string {
	var out strings.Builder
	if len(r.Objects) > 0 {
		w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "ORDER\tPLAN\tOBJECT\tBECAUSE") // it goes to memory
		for _, i := range r.Objects {
			_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", i.Order, verdict(i), i, because(i))
		}
		_ = w.Flush() // likewise
	}
	for _, i := range r.Objects {
		lines := details(i)
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n%s: %s\n", withFile(i), verdict(i))
		for _, l := range lines {
			fmt.Fprintf(&out, "  %s\n", l)
		}
	}
	if len(r.Objects) > 0 {
		out.WriteString("\n")
	}
	fmt.Fprintf(&out, "%s.\n", summary(r))
	fmt.Fprintf(&out, "Running VMs ask for %s.\n", capacity(r.Capacity))
	return out.String()
}

func withFile(i plan.Item) string {
	if i.File == "" {
		return i.String()
	}
	return i.String() + " (" + i.File + ")"
}

// verdict is the class, or that the object isn't taken.
func verdict(i plan.Item) string {
	if i.IsRefused() {
		return "REFUSED"
	}
	return string(i.Class)
}

// because is the first cause.
func because(i plan.Item) string {
	switch {
	case len(i.Refused) > 0 && i.Refused[0].Field != "":
		return i.Refused[0].Field
	case len(i.Refused) > 0:
		return "the API server says why"
	case i.IsRefused():
		return "a policy"
	case i.Replaces != "":
		return "in the place of " + i.Replaces
	case i.Change == plan.Created || i.Change == plan.Deleted:
		return i.Change
	}
	causes := change.Paths(i.Fields, i.Class)
	switch len(causes) {
	case 0:
		return i.Change
	case 1:
		return causes[0]
	}
	return fmt.Sprintf("%s and %d more", causes[0], len(causes)-1)
}

// details are lines on one object: refusals, fields, data, capacity.
func details(i plan.Item) []string {
	var lines []string
	for _, r := range i.Refused {
		lines = append(lines, "refused: "+r.String())
	}
	for _, b := range i.Policies {
		if b.Refuses {
			lines = append(lines, "refused by policy "+b.Policy+": "+b.Message)
			continue
		}
		lines = append(lines, "breaks policy "+b.Policy+": "+b.Message)
	}
	for _, f := range i.Fields {
		line := f.Path + ": " + string(f.Class)
		if f.Why != "" {
			line += ", " + f.Why
		}
		lines = append(lines, line)
	}
	for _, n := range i.Notes {
		lines = append(lines, "note: "+n)
	}
	if len(i.VMs) > 0 {
		lines = append(lines, "VMs: "+reached(i.VMs))
	}
	if len(i.Lost) > 0 {
		lines = append(lines, "data lost: "+data(i.Lost))
	}
	if len(i.Kept) > 0 {
		lines = append(lines, "data kept: "+data(i.Kept))
	}
	if i.Capacity != nil {
		lines = append(lines, "asks for "+capacity(*i.Capacity))
	}
	return lines
}

// shownVMs is how many VMs a line names.
const shownVMs = 10

func reached(vms []plan.Reached) string {
	var all []string
	for _, v := range vms[:min(len(vms), shownVMs)] {
		all = append(all, fmt.Sprintf("%s (%s)", strings.TrimPrefix(v.Namespace+"/"+v.Name, "/"), v.Class))
	}
	if more := len(vms) - shownVMs; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}

func data(all []change.Data) string {
	var texts []string
	for _, d := range all {
		texts = append(texts, d.String())
	}
	return strings.Join(texts, ", ")
}

func summary(r plan.Report) string {
	var counts []string
	for _, c := range change.Classes() {
		if n := r.Counts[c]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, c))
		}
	}
	text := fmt.Sprintf("From %s to %s: ", r.From, r.To)
	if len(counts) == 0 {
		text += "nothing changes"
	} else {
		text += strings.Join(counts, ", ")
	}
	text += fmt.Sprintf("; %d unchanged", r.Unchanged)
	if r.Refused {
		text += "; something is REFUSED"
	}
	return text + removal(r.Removal)
}

// removal says what a Bundle of which spec.prune.maxFraction is less would have to be told.
func removal(r *plan.Removal) string {
	if r == nil {
		return ""
	}
	text := fmt.Sprintf(".\nIt removes %d of %d VMs: where spec.prune.maxFraction of the Bundle allows less, commit them to its spec.prune.approved", len(r.VMs), r.Of)
	if r.Approval != "" {
		text += ", or " + r.Approval + " for all of them"
	}
	return text
}

func capacity(c plan.Capacity) string {
	return "cpu " + amount(c.Before.CPU, c.After.CPU, c.Delta.CPU) + ", memory " + amount(c.Before.Memory, c.After.Memory, c.Delta.Memory)
}

func amount(before, after, delta resource.Quantity) string {
	if delta.IsZero() {
		return after.String()
	}
	sign := "+"
	if delta.Sign() < 0 {
		sign = ""
	}
	return fmt.Sprintf("%s → %s (%s%s)", before.String(), after.String(), sign, delta.String())
}

// markdown is a comment on a pull request.
func markdown(r plan.Report) string {
	var out strings.Builder
	headline := "Nothing disruptive"
	switch {
	case r.Refused:
		headline = "Refused"
	case r.Class.Disruptive():
		headline = "Disruptive"
	}
	fmt.Fprintf(&out, "### virtstack plan: %s\n\n%s.\nRunning VMs ask for %s.\n", headline, escaped(summary(r)), capacity(r.Capacity))
	if len(r.Objects) == 0 {
		return out.String()
	}
	out.WriteString("\n| order | plan | object | because |\n| --- | --- | --- | --- |\n")
	for _, i := range r.Objects {
		fmt.Fprintf(&out, "| %d | %s | %s | %s |\n", i.Order, bold(i), escaped(i.String()), escaped(because(i)))
	}
	out.WriteString("\n<details><summary>Details</summary>\n")
	for _, i := range r.Objects {
		lines := details(i)
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n**%s**: %s\n\n", escaped(withFile(i)), verdict(i))
		for _, l := range lines {
			fmt.Fprintf(&out, "- %s\n", escaped(l))
		}
	}
	out.WriteString("\n</details>\n")
	return out.String()
}

func bold(i plan.Item) string {
	if i.IsRefused() || i.Class.Disruptive() {
		return "**" + verdict(i) + "**"
	}
	return verdict(i)
}

// escaped keeps what a repository says from being markup, mentions among it.
func escaped(text string) string {
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "<", "&lt;", ">", "&gt;", "@", "@\u200b", "`", "\\`", "*", "\\*", "_", "\\_",
		"[", "\\[", "]", "\\]", "\r", " ", "\n", " ").Replace(text)
}
