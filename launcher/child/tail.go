package child

import "strings"

// most bytes of a command's output that are kept.
const most = 64 << 10

// tail keeps the last bytes written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - most; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// text is what was written, on one line.
func (t *tail) text() string { return strings.Join(strings.Fields(string(t.b)), " ") }
