//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"virtstack.io/virtstack/ci/lab"
)

// Every shell block of the documentation is run as it stands, in order. A page is alone, but for recipes: each keeps to
// a namespace of its own.
func TestCommandsInDocs(t *testing.T) {
	pages, err1 := filepath.Glob(filepath.Join(theLab.Root, "docs", "*.md"))
	recipes, err2 := filepath.Glob(filepath.Join(theLab.Root, "docs", "recipes", "*.md"))
	tools, err3 := filepath.Glob(filepath.Join(theLab.Root, "docs", "gitops", "*.md"))
	pages = slices.Concat(pages, tools, recipes)
	if err := errors.Join(err1, err2, err3); err != nil || len(pages) < 5 {
		t.Fatalf("found pages %v: %v", pages, err)
	}
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		script := shellBlocks(string(raw))
		if script == "" {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			if slices.Contains(recipes, page) {
				t.Parallel()
			}
			forget(t, script)
			if filepath.Base(page) == "flux.md" {
				flux.start(t)
			}
			cmd := theLab.Command(t.Context(), "bash", "-euxo", "pipefail", "-c", script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			// A page that installs leaves a roll-out behind.
			if err := theLab.Available(t.Context(), 4*time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
}

var (
	madeNamespace  = regexp.MustCompile(`(?m)^kubectl create namespace (\S+)`)
	madeRepository = regexp.MustCompile(regexp.QuoteMeta(strings.TrimSuffix(lab.GitURL(""), ".git")) + `([a-z0-9-]+\.git)`)
)

// forget removes what a run of a page that was cut off has left: the page begins as on a new cluster.
func forget(t *testing.T, script string) {
	t.Helper()
	for _, made := range madeNamespace.FindAllStringSubmatch(script, -1) {
		for _, args := range [][]string{
			{"delete", "bundles", "--all", "-n", made[1]}, // while their accounts are there to prune with
			{"delete", "namespace", made[1], "--ignore-not-found"},
		} {
			if _, err := theLab.Kubectl(t.Context(), append(args, "--timeout=180s")...); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, made := range madeRepository.FindAllStringSubmatch(script, -1) {
		if err := os.RemoveAll(filepath.Join(theLab.State(), "git", made[1])); err != nil {
			t.Fatal(err)
		}
	}
}

func shellBlocks(page string) string {
	var script strings.Builder
	for i, part := range strings.Split(page, "```") {
		if code, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			script.WriteString(code)
		}
	}
	return script.String()
}
