// Package timezone has the names of the tz database, as of the time zones that a guest's clock may show: the launcher's
// image has the data of each. It reads no file, so that the answer is the same wherever it is asked for.
package timezone

import (
	_ "embed" // names.txt
	"slices"
	"strings"
)

//go:embed names.txt
var list string

var names = strings.Fields(list)

// Names returns all names, sorted. The caller must not change them.
func Names() []string { return names }

// Known tells whether there is a time zone of that name, spelled so.
func Known(name string) bool {
	_, found := slices.BinarySearch(names, name)
	return found
}

// Meant returns the name that only differs in capitals, spaces or hyphens from what was written, or is the end of one,
// as a city's is; empty: there is none.
func Meant(written string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer(" ", "_", "-", "_").Replace(s)) }
	want := plain(written)
	if want == "" {
		return ""
	}
	for _, name := range names {
		if plain(name) == want {
			return name
		}
	}
	for _, name := range names {
		if strings.HasSuffix(plain(name), "/"+want) {
			return name
		}
	}
	return ""
}
