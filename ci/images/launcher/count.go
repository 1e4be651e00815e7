package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

var (
	errNoTests = errors.New("no test ran")
	errSkipped = errors.New("a skipped test proves nothing")
)

// count reads what a test binary wrote with -test.v and tells log how many tests passed, those that only hold others
// included.
func count(output []byte, log io.Writer) error {
	passed := 0
	for line := range bytes.Lines(output) {
		verdict := bytes.TrimLeft(line, " ")
		switch {
		case bytes.HasPrefix(verdict, []byte("--- SKIP: ")):
			return fmt.Errorf("%s: %w", bytes.TrimSpace(verdict), errSkipped)
		case bytes.HasPrefix(verdict, []byte("--- PASS: ")):
			passed++
		}
	}
	if passed == 0 {
		return errNoTests
	}
	fmt.Fprintf(log, "%d tests passed\n", passed)
	return nil
}
