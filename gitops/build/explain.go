package build

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	// unknownAnchor is what the YAML parser says of an alias without its anchor; it quotes what may be a password.
	unknownAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)
	// unknownField is what the parser of kustomizations says of a field that doesn't exist.
	unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)
	// twin is what kustomize says of a second object of one name.
	twin = regexp.MustCompile(`already registered id: ([^\s']+)`)
	// patch is where kustomize quotes a patch, which may be of a Secret.
	patch = regexp.MustCompile("(?s) with config: `.*?`| from \\[patch: .*\\]")
)

// located says where in a file the YAML parser's error is: the parser leaves the line out where it is the first, and
// where it hasn't come to count lines.
func located(data []byte, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("yaml: line %d: an alias (*) whose anchor (&) isn't in the document: put a text that starts with * in quotes",
			lineOf(data, "*"+m[1]))
	}
	if strings.HasPrefix(text, "line ") {
		return err
	}
	return fmt.Errorf("yaml: line %d: %s", unreadable(data), text)
}

// lineOf returns the line, from 1, of a text's first appearance; 1 where there is none.
func lineOf(data []byte, text string) int {
	at := max(bytes.Index(data, []byte(text)), 0)
	return 1 + bytes.Count(data[:at], []byte("\n"))
}

// unreadable returns the first line, from 1, that isn't text; 1 where all is.
func unreadable(data []byte) int {
	for i, line := range bytes.Split(data, []byte("\n")) {
		control := bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r == 0x7f })
		if control || !utf8.Valid(line) {
			return i + 1
		}
	}
	return 1
}

// misspelt adds the line to the error of a kustomization with an unknown field.
func misspelt(data []byte, err error) error {
	m := unknownField.FindStringSubmatch(err.Error())
	if m == nil {
		return brief(err)
	}
	return fmt.Errorf("line %d: %w", lineOf(data, m[1]+":"), brief(err))
}

// place is where an object is written.
type place struct {
	file string
	line int
}

func (p place) String() string { return p.file + ", line " + strconv.Itoa(p.line) }

// explain makes an error of kustomize readable: the places of two objects of one name, and no word of a Secret.
func (w *walk) explain(err error) error {
	err = errors.New(patch.ReplaceAllString(err.Error(), ""))
	short := brief(err)
	if m := twin.FindStringSubmatch(err.Error()); m != nil {
		if where := w.places[m[1]]; len(where) > 1 {
			return fmt.Errorf("%s is there twice: %s, and %s: one must go", m[1], where[0], where[1])
		}
	}
	if w.quotes(err.Error()) || w.quotes(short.Error()) {
		return errors.New("kustomize says why, but quotes a Secret: look at what the Secrets are made of, and build it where only you see it")
	}
	return short
}

// shortest is the length from which a part of a Secret is looked for in errors: shorter ones are in any text.
const shortest = 4

// quotes tells whether a text holds a part of a Secret.
func (w *walk) quotes(text string) bool {
	return slices.ContainsFunc(w.secrets, func(s string) bool {
		return slices.ContainsFunc(parts(s), func(p string) bool { return strings.Contains(text, p) })
	})
}

// parts returns the lines of what a Secret is made of and, where they have the form key=value, the values.
func parts(secret string) []string {
	var all []string
	for line := range strings.Lines(secret) {
		_, value, _ := strings.Cut(line, "=")
		all = append(all, strings.TrimSpace(line), strings.Trim(strings.TrimSpace(value), `"'`))
	}
	return slices.DeleteFunc(all, func(p string) bool { return len(p) < shortest })
}
