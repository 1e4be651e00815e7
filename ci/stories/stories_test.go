package stories

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"virtstack.io/virtstack/kube/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// TestStories runs every story in testdata; -rewrite draws the transcripts anew.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string { return w.run(d) })
	})
}
