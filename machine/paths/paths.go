// Package paths says in a VM's terms what was said of its VMI: the file that a user mends has the same fields, deeper.
package paths

import (
	"reflect"
	"regexp"
	"strings"

	v1 "kubevirt.io/api/core/v1"
)

// template is where a VM keeps what its VMI is made of.
const template = "spec.template."

// fields matches the paths of a VMI that are another VM's field: those of its spec, labels and annotations, where they
// don't go on from something else. No field of a VM's own spec has the name of one in a VMI's.
var fields = regexp.MustCompile(`(^|[^\w.\]/-])(spec\.(?:` + strings.Join(specFields(), "|") + `)|metadata\.(?:labels|annotations))\b`)

func specFields() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1.VirtualMachineInstanceSpec]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, regexp.QuoteMeta(name))
	}
	return names
}

// others matches what the API server says before the paths of an object that is neither.
var others = regexp.MustCompile(`\b(Pod|PersistentVolumeClaim) "[^"]*" is invalid: `)

// OfVM returns a text about a VMI that a VM made, with the paths of fields as the VM has them:
// spec.template.spec.volumes[0] for spec.volumes[0]. Paths of the VM itself, and of other objects, stay.
func OfVM(text string) string {
	if others.MatchString(text) {
		return text
	}
	return fields.ReplaceAllString(text, "${1}"+template+"${2}")
}

// Error is an error whose text is as OfVM has it.
type Error struct{ Err error }

func (e Error) Error() string { return OfVM(e.Err.Error()) }

// Unwrap returns the error as it was.
func (e Error) Unwrap() error { return e.Err }
