package launcher

import (
	"errors"
	"strings"
	"testing"
)

func TestCountWantsTestsAndNoneSkipped(t *testing.T) {
	for name, tc := range map[string]struct {
		output, log string
		err         error
	}{
		"passed":      {"=== RUN   TestA\n=== RUN   TestA/b\n--- PASS: TestA (0.01s)\n    --- PASS: TestA/b (0.00s)\nPASS\n", "2 tests passed\n", nil},
		"skipped":     {"--- PASS: TestA (0.01s)\n    --- SKIP: TestA/b (0.00s)\nPASS\n", "", errSkipped},
		"none":        {"testing: warning: no tests to run\nPASS\n", "", errNoTests},
		"nothing":     {"", "", errNoTests},
		"only a word": {"what --- PASS: is\n", "", errNoTests},
	} {
		var log strings.Builder
		if err := count([]byte(tc.output), &log); !errors.Is(err, tc.err) || log.String() != tc.log {
			t.Errorf("%s: got %v and %q, want %v and %q", name, err, log.String(), tc.err, tc.log)
		}
	}
}
