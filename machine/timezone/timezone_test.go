package timezone_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // what is asked doesn't depend on the machine

	"virtstack.io/virtstack/machine/timezone"
)

func TestEveryNameIsOfTheDatabase(t *testing.T) {
	names := timezone.Names()
	if len(names) < 500 || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("%d names, sorted: %t; want 500 or more, sorted, each once", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		if _, err := time.LoadLocation(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasPrefix(name, "/") || strings.Contains(name, "..") {
			t.Errorf("%s leads out of the database's directory", name)
		}
	}
}

func TestKnownAndMeant(t *testing.T) {
	for name, tc := range map[string]struct {
		known bool
		meant string
	}{
		"Europe/Berlin":    {true, "Europe/Berlin"},
		"UTC":              {true, "UTC"},
		"US/Pacific":       {true, "US/Pacific"},
		"Etc/GMT+5":        {true, "Etc/GMT+5"},
		"europe/berlin":    {false, "Europe/Berlin"},
		"America/New York": {false, "America/New_York"},
		"Tokyo":            {false, "Asia/Tokyo"},
		"Europe/Bielefeld": {false, ""},
		"Local":            {false, ""},
		"":                 {false, ""},
		"../etc/passwd":    {false, ""},
		"CET-1CEST":        {false, ""},
	} {
		if known, meant := timezone.Known(name), timezone.Meant(name); known != tc.known || meant != tc.meant {
			t.Errorf("%q: known %t, meant %q; want %t, %q", name, known, meant, tc.known, tc.meant)
		}
	}
}
