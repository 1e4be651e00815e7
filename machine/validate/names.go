package validate

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxName is the most characters of a name within a machine: such names become labels, file and
	// link names.
	maxName = 63
	// maxValue is the most bytes of a value that an error repeats.
	maxValue = 128
)

// devices63 are the names of devices.
var devices63 = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// label wants a DNS label. Whatever is one is harmless as the name of a file.
func label(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "must be a DNS label, such as root-1")}
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return field.ErrorList{field.Invalid(at, short(name),
			"must be a DNS label: lower-case letters, digits and '-', at most 63 characters, such as root-1")}
	}
	return nil
}

// linkName wants what networks and interfaces may be called, which is more than a DNS label.
func linkName(at *field.Path, name string) field.ErrorList {
	const right = "letters, digits, '-' and '_', at most 63 characters, such as default"
	if name == "" {
		return field.ErrorList{field.Required(at, "must be "+right)}
	}
	other := strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if other || len(name) > maxName {
		return field.ErrorList{field.Invalid(at, short(name), "must be "+right)}
	}
	return nil
}

// deviceName wants what a device may be called: libvirt knows the device by it.
func deviceName(at *field.Path, name string) field.ErrorList {
	const right = "letters, digits, '-', '_' and '.', the first a letter or digit, at most 63 characters, such as tablet-1"
	if name == "" {
		return field.ErrorList{field.Required(at, "must be "+right)}
	}
	if !devices63.MatchString(name) {
		return field.ErrorList{field.Invalid(at, short(name), "must be "+right)}
	}
	return nil
}

// filePath wants the clean absolute path of a file.
func filePath(at *field.Path, p string) field.ErrorList {
	odd := strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f })
	if !path.IsAbs(p) || path.Clean(p) != p || p == "/" || len(p) > 4096 || odd {
		return field.ErrorList{field.Invalid(at, short(p),
			"must be the absolute path of a file, without '.', '..' or empty parts, such as /disk/disk.img")}
	}
	return nil
}

// unique wants no two equal names; name returns that of the entry at an index and where it is.
func unique(n int, name func(int) (string, *field.Path)) field.ErrorList {
	var errs field.ErrorList
	first := map[string]*field.Path{}
	for i := range n {
		value, at := name(i)
		other, seen := first[value]
		if !seen {
			first[value] = at
			continue
		}
		err := field.Duplicate(at, short(value))
		err.Detail = fmt.Sprintf("must be unique: %s has it too", other)
		errs = append(errs, err)
	}
	return errs
}

// oneOf wants a value that is allowed; the empty one, which stands for a default, is.
func oneOf[T ~string](at *field.Path, value T, allowed []T) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, T(short(string(value))), allowed)}
}

// set returns the JSON names of the pointers in a struct that are not nil, in the order of the fields.
func set(union any) []string {
	return members(union, func(v reflect.Value) bool { return !v.IsNil() })
}

// exactlyOne wants one pointer of a struct of pointers to be set.
func exactlyOne(at *field.Path, union any) field.ErrorList {
	found := set(union)
	switch len(found) {
	case 1:
		return nil
	case 0:
		all := members(union, func(reflect.Value) bool { return true })
		return field.ErrorList{field.Required(at, "must have one of "+strings.Join(all, ", "))}
	}
	return tooMany(at, found)
}

func tooMany(at *field.Path, found []string) field.ErrorList {
	return field.ErrorList{field.Invalid(at, strings.Join(found, ", "),
		fmt.Sprintf("must have only one of these, not %d", len(found)))}
}

func members(union any, wanted func(reflect.Value) bool) []string {
	v := reflect.ValueOf(union)
	var names []string
	for i := range v.NumField() {
		if v.Field(i).Kind() != reflect.Pointer || !wanted(v.Field(i)) {
			continue
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// short cuts a value that an error repeats.
func short(value string) string {
	if len(value) <= maxValue {
		return value
	}
	return strings.ToValidUTF8(value[:maxValue], "") + "…"
}
