package plan_test

import (
	"testing"

	"virtstack.io/virtstack/controllers/operator/plan"
)

func TestCRDsOfAnOlderRelease(t *testing.T) {
	for name, tc := range map[string]struct{ crd, program, want string }{
		"the same":           {"v0.3.0", "v0.3.0", ""},
		"a patch older":      {"v0.3.0", "v0.3.7", ""},
		"newer, rolled back": {"v0.4.0", "v0.3.0", ""},
		"a minor older":      {"v0.2.9", "v0.3.0", "is of v0.2.9; this operator needs those of v0.3"},
		"a major older":      {"v0.9.0", "v1.0.0", "is of v0.9.0; this operator needs those of v1.0"},
		"without a release":  {"", "v0.3.0", "is of no release; this operator needs those of v0.3"},
		"a program's own":    {"v0.3.0", "dev", `can't be compared: this operator is of release "dev", which is no version`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Older(tc.crd, tc.program); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
