package mac_test

import (
	"errors"
	"regexp"
	"testing"

	"virtstack.io/virtstack/machine/mac"
)

// Addresses as people write them. Source: kubevirt/kubevirt#1213.
func TestSpellings(t *testing.T) {
	for text, tc := range map[string]struct {
		want string
		err  error
	}{
		"02:00:5e:00:53:0a":        {"02:00:5e:00:53:0a", nil},
		"02:00:5E:00:53:0A":        {"02:00:5e:00:53:0a", nil},
		"02-00-5e-00-53-0a":        {"02:00:5e:00:53:0a", nil},
		"0200.5e00.530a":           {"02:00:5e:00:53:0a", nil},
		"02:00:5e:00:53":           {"", mac.ErrFormat},
		"02:00:5e:00:53:0a:0b:0c":  {"", mac.ErrFormat},
		"02:00:5e:00:53:0g":        {"", mac.ErrFormat},
		"02:00-5e:00-53:0a":        {"", mac.ErrFormat},
		"02005e00530a":             {"", mac.ErrFormat},
		"2:0:5e:0:53:a":            {"", mac.ErrFormat},
		"":                         {"", mac.ErrFormat},
		"02:00:5e:00:53:0\u00e9":   {"", mac.ErrFormat},
		"01:00:5e:00:53:0a":        {"01:00:5e:00:53:0a", mac.ErrGroup},
		"FF-FF-FF-FF-FF-FF":        {"ff:ff:ff:ff:ff:ff", mac.ErrGroup},
		"00:00:00:00:00:00":        {"00:00:00:00:00:00", mac.ErrZero},
		" 02:00:5e:00:53:0a":       {"", mac.ErrFormat},
		"02:00:5e:00:53:0a'/><x y": {"", mac.ErrFormat},
	} {
		if got, err := mac.Parse(text); got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%q: got %q, %v; want %q, %v", text, got, err, tc.want, tc.err)
		}
	}
}

// Whatever is taken has the one spelling, and that is taken as it is.
func FuzzWhatIsTakenHasOneSpelling(f *testing.F) {
	for _, s := range []string{"02:00:5e:00:53:0a", "02-00-5E-00-53-0A", "0200.5e00.530a", "01:00:5e:00:53:0a", "", "::::::"} {
		f.Add(s)
	}
	one := regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := mac.Parse(text)
		if err != nil {
			return
		}
		if !one.MatchString(got) {
			t.Errorf("%q is taken as %q", text, got)
		}
		if again, err := mac.Parse(got); again != got || err != nil {
			t.Errorf("%q becomes %q, and that %q, %v", text, got, again, err)
		}
	})
}
