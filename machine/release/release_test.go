package release

import (
	"runtime/debug"
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

func TestInfo(t *testing.T) {
	if got := Info("0123456789ab"); got.GitVersion != Version+"+0123456789ab" || got.GoVersion == "" || got.Platform == "" {
		t.Errorf("got %+v", got)
	}
	if got := Info(""); got.GitVersion != Version {
		t.Errorf("of an unknown build: got %q", got.GitVersion)
	}
	Commit, BuildDate = "c0ffee", "2026-01-02T03:04:05Z"
	t.Cleanup(func() { Commit, BuildDate = "", "" })
	if got := Info(""); got.GitCommit != Commit || got.BuildDate != BuildDate || got.GitTreeState != "clean" {
		t.Errorf("of a stamped build: got %+v", got)
	}
}

func TestACheckoutTellsItsCommit(t *testing.T) {
	for modified, state := range map[string]string{"true": "dirty", "false": "clean"} {
		i := version.Info{}
		checkout(&i, []debug.BuildSetting{{Key: "vcs.revision", Value: "c0ffee"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: modified}})
		if i.GitCommit != "c0ffee" || i.BuildDate != "2026-01-02T03:04:05Z" || i.GitTreeState != state {
			t.Errorf("got %+v, want it %s", i, state)
		}
	}
}
