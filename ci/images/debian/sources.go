package debian

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// archive is one package archive that the machine is set up with.
type archive struct {
	uri     string
	suites  []string
	keyring string // file, empty if apt's own keyrings are to be used
}

const defaultKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// errNoArchive is returned on a machine whose apt sources name no Debian archive.
var errNoArchive = errors.New("no Debian archive among the machine's apt sources")

// machineArchives reads the apt sources beneath etc, which is /etc/apt but for tests.
func machineArchives(etc string) ([]archive, error) {
	files, err := filepath.Glob(filepath.Join(etc, "sources.list.d", "*"))
	if err != nil {
		return nil, err
	}
	var all []archive
	for _, file := range append([]string{filepath.Join(etc, "sources.list")}, files...) {
		parse := map[string]func(io.Reader) ([]archive, error){".list": parseOneLine, ".sources": parseStanzas}[filepath.Ext(file)]
		f, err := os.Open(file)
		if parse == nil || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := parse(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// debianArchive picks the archive that serves the machine's own release, which serves every other suite as well.
func debianArchive(all []archive, codename string) (archive, error) {
	for _, a := range all {
		if slices.Contains(a.suites, codename) {
			if a.keyring == "" {
				a.keyring = defaultKeyring
			}
			return a, nil
		}
	}
	return archive{}, fmt.Errorf("suite %q: %w", codename, errNoArchive)
}

// parseOneLine reads the form "deb [options] URI suite component...".
func parseOneLine(r io.Reader) ([]archive, error) {
	var all []archive
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "deb" {
			continue
		}
		a, rest := archive{}, fields[1:]
		if options, after, ok := strings.Cut(strings.TrimPrefix(strings.Join(rest, " "), "["), "]"); ok {
			a.keyring, rest = signedBy(options), strings.Fields(after)
		}
		if len(rest) < 2 {
			continue
		}
		a.uri, a.suites = rest[0], rest[1:2]
		all = append(all, a)
	}
	return all, lines.Err()
}

func signedBy(options string) string {
	for option := range strings.FieldsSeq(options) {
		if file, ok := strings.CutPrefix(option, "signed-by="); ok {
			return file
		}
	}
	return ""
}

// parseStanzas reads the form of fields and values, one stanza for each archive.
func parseStanzas(r io.Reader) ([]archive, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var all []archive
	for stanza := range strings.SplitSeq(string(text), "\n\n") {
		fields := stanzaFields(stanza)
		if fields["types"] == "" || fields["enabled"] == "no" || !slices.Contains(strings.Fields(fields["types"]), "deb") {
			continue
		}
		for uri := range strings.FieldsSeq(fields["uris"]) {
			all = append(all, archive{uri, strings.Fields(fields["suites"]), fields["signed-by"]})
		}
	}
	return all, nil
}

func stanzaFields(stanza string) map[string]string {
	fields := map[string]string{}
	for line := range strings.SplitSeq(stanza, "\n") {
		name, value, ok := strings.Cut(line, ":")
		if ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, " ") {
			fields[strings.ToLower(name)] = strings.TrimSpace(value)
		}
	}
	return fields
}
