//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every shell block of the documentation is run as it stands, in order, a page at a time.
func TestCommandsInDocs(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(theLab.Root, "docs", "*.md"))
	if err != nil || len(pages) < 4 {
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

func shellBlocks(page string) string {
	var script strings.Builder
	for i, part := range strings.Split(page, "```") {
		if code, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			script.WriteString(code)
		}
	}
	return script.String()
}
