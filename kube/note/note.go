// Package note keeps the notes of events to a length that the API server takes: it refuses longer ones, and nobody is told.
package note

import (
	"fmt"
	"strings"
)

// most is how many bytes of a note are for what can be long: of the 1024 that the validation of events.k8s.io/v1 lets a
// note have, the rest is for the words around it.
const most = 900

// Of returns what is said, cut where it is too long.
func Of(what any) string {
	s := fmt.Sprint(what)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}
