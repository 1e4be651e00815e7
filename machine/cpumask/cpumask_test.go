package cpumask_test

import (
	"testing"

	"virtstack.io/virtstack/machine/cpumask"
)

func TestMasks(t *testing.T) {
	for text, want := range map[string]string{
		"": "11111111", " ": "11111111", "0": "10000000", "0-3,^1": "10110000", "^2,0-3": "11010000", "1, 5-6": "01000110", "7-7": "00000001",
		"^1": "error", "0-3,^0-3": "error", "3-1": "error", "a": "error", "0,": "error", "-1": "error", "0-4096": "error", "99999999999": "error",
	} {
		m, err := cpumask.Parse(text)
		got := ""
		for id := range uint(8) {
			if got += "0"; m.Has(id) {
				got = got[:len(got)-1] + "1"
			}
		}
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func FuzzMasks(f *testing.F) {
	f.Add("0-3,^1")
	f.Add("0-4095,0-4095")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := cpumask.Parse(text); err == nil && len(m) > 4096 {
			t.Errorf("%q: %d virtual CPUs", text, len(m))
		}
	})
}
