package health

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"virtstack.io/virtstack/gitops/build"
)

var update = flag.Bool("update", false, "write the table of the page")

const (
	root  = "../.."
	page  = root + "/docs/gitops/health.md"
	begin = "<!-- table: go test ./ci/health -update -->\n"
	end   = "<!-- end of table -->\n"
)

func tools(t *testing.T) *Tools {
	t.Helper()
	opened, err := Open(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func verdict(t *testing.T, s State) Verdict {
	t.Helper()
	u, err := s.Sample(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	v, err := tools(t).Of(t.Context(), u)
	if err != nil {
		t.Fatalf("%s: %v", s.File(), err)
	}
	return v
}

// The page says what the tools say.
func TestThePageIsTrue(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(raw), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no %s", page, begin)
	}
	var table bytes.Buffer
	fmt.Fprintf(&table, "| kind | state | kstatus | Flux | Argo CD |\n| --- | --- | --- | --- | --- |\n")
	for _, s := range States {
		v, mark := verdict(t, s), ""
		if s.Live {
			mark = " ●"
		}
		fmt.Fprintf(&table, "| %s | %s%s | %s | %s | %s |\n", s.Kind, strings.ReplaceAll(s.Name, "-", " "), mark, v.KStatus, v.Flux, v.Argo)
	}
	want := head + begin + "\n" + table.String() + "\n" + end + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(raw), want); diff != "" && !*update {
		t.Errorf("%s is stale (-has +want); go test ./ci/health -update:\n%s", page, diff)
	}
}

// What is over is never said to be on its way, nor what is on its way to be over.
func TestNothingProgressesForEver(t *testing.T) {
	for _, s := range States {
		v := verdict(t, s)
		if !s.Passing && (v.Flux == "InProgress" || v.Flux == "Unknown" || v.Argo == "Progressing") && !onlyTheGuestEnds(s) {
			t.Errorf("%s %s: %+v for ever", s.Kind, s.Name, v)
		}
		if s.Passing && (v.Flux == "Current" || v.Argo == "Healthy") {
			t.Errorf("%s %s: %+v while it is on its way", s.Kind, s.Name, v)
		}
	}
}

// onlyTheGuestEnds tells of a state in which Flux waits until its own timeout: a VMI, which has no deadlines of its own,
// with a guest that doesn't get ready.
func onlyTheGuestEnds(s State) bool {
	return s.Kind == "VirtualMachineInstance" && s.Name == "not-ready"
}

// The words of field case 21, and of their kind.
func TestHaltedIsHealthyAndUnschedulableIsNot(t *testing.T) {
	for name, want := range map[string]Verdict{
		"halted":                             {KStatus: "Current", Flux: "Current", Argo: "Healthy"},
		"manual-never-started":               {KStatus: "Current", Flux: "Current", Argo: "Healthy"},
		"shut-down-by-its-guest":             {KStatus: "Current", Flux: "Current", Argo: "Healthy"},
		"paused":                             {KStatus: "Current", Flux: "Current", Argo: "Suspended"},
		"restart-required":                   {KStatus: "Current", Flux: "Current", Argo: "Healthy"},
		"unschedulable":                      {KStatus: "InProgress", Flux: "InProgress", Argo: "Progressing"},
		"unschedulable-past-its-deadline":    {KStatus: "Failed", Flux: "Failed", Argo: "Degraded"},
		"image-pull-error-past-its-deadline": {KStatus: "Failed", Flux: "Failed", Argo: "Degraded"},
		"crash-loop":                         {KStatus: "Failed", Flux: "Failed", Argo: "Degraded"},
		"one-start-and-it-failed":            {KStatus: "Failed", Flux: "Failed", Argo: "Degraded"},
		"not-ready-past-its-deadline":        {KStatus: "Failed", Flux: "Failed", Argo: "Degraded"},
	} {
		v := verdict(t, State{Kind: "VirtualMachine", Name: name})
		v.Says = ""
		if v != want {
			t.Errorf("a VM that is %s: got %+v, want %+v", name, v, want)
		}
	}
}

// A Flux without the pack, and everything else that asks kstatus, waits for an install and an upgrade, and stops where one
// halts.
func TestTheInstallNeedsNoPack(t *testing.T) {
	for name, want := range map[string]string{
		"new": "InProgress", "deploying": "InProgress", "updating": "InProgress", "deployed": "Current",
		"failed": "Failed", "second": "Failed", "deleting": "Terminating",
	} {
		if v := verdict(t, State{Kind: "KubeVirt", Name: name}); v.KStatus != want {
			t.Errorf("a KubeVirt that is %s: got %+v, want %s", name, v, want)
		}
	}
}

// Each object in testdata is a state of the page, and each state has one.
func TestEveryObjectIsAState(t *testing.T) {
	files, err := fs.Glob(os.DirFS(root), "ci/health/testdata/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range States {
		want = append(want, s.File())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("-states +files:\n%s", diff)
	}
}

// Scripts can't share code; what all begin with is the same.
func TestScriptsBeginAlike(t *testing.T) {
	scripts := tools(t).argo
	const last = `"no controller has looked at it yet")` + "\nend\n"
	want, _, found := strings.Cut(scripts[scriptKey+"kubevirt.io_VirtualMachine"], last)
	for key, script := range scripts {
		if got, _, _ := strings.Cut(script, last); !found || got != want {
			t.Errorf("%s begins with another text: %s", key, cmp.Diff(want, got))
		}
	}
	if len(scripts) != 11 || len(tools(t).flux) != 11 {
		t.Errorf("%d scripts and expressions of %d kinds, want 11", len(scripts), len(tools(t).flux))
	}
}

// Listed as components, the packs reach the objects of a team's repository and leave what else is in them.
func TestPacksAreComponents(t *testing.T) {
	objects, err := build.Objects(t.Context(), os.DirFS(root), "examples/health", build.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		checks, _, _ := unstructured.NestedSlice(o.Object, "spec", "healthCheckExprs")
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		path, _, _ := unstructured.NestedString(o.Object, "spec", "path")
		switch {
		case o.GetKind() == "ConfigMap" && len(data) == 12 && data["url"] != "" && o.GetNamespace() == "argocd":
		case o.GetKind() == "Kustomization" && len(checks) == 11 && path == "./vms" && o.GetName() == "vms":
		default:
			t.Errorf("got %s %s with %d checks and %d keys", o.GetKind(), o.GetName(), len(checks), len(data))
		}
	}
	if len(objects) != 2 {
		t.Errorf("got %d objects, want 2", len(objects))
	}
}
