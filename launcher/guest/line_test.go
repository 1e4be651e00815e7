package guest_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"virtstack.io/virtstack/launcher/guest"
)

func TestLine(t *testing.T) {
	long := strings.Repeat("x", guest.Longest-1)
	for name, tc := range map[string]struct{ text, want string }{
		"as it is":           {"starting the guest: no bücher", "starting the guest: no bücher"},
		"QEMU's lines":       {"process exited:\r\nqemu: no disk\n", "process exited: qemu: no disk"},
		"a path in Latin-1":  {"can't open b\xfccher", "can't open b?cher"},
		"a rune at the edge": {long + "ü", long + "?"},
		"too long":           {long + "xyz", long + "x"},
		"nonsense":           {strings.Repeat("a\xff", guest.Longest), strings.Repeat("a?", guest.Longest/2)},
		"nothing":            {"", ""},
	} {
		if got := guest.Line(tc.text); got != tc.want || !utf8.ValidString(got) {
			t.Errorf("%s: got %.80q, want %.80q", name, got, tc.want)
		}
	}
}
