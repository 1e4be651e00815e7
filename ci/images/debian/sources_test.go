package debian

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

const stanzas = `# a comment
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /keys/debian.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
`

func TestDebianArchiveOfTheMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		files        map[string]string
		uri, keyring string
		err          error
	}{
		"stanzas": {
			files: map[string]string{"sources.list.d/debian.sources": stanzas},
			uri:   "http://mirror.example/debian", keyring: "/keys/debian.gpg",
		},
		"one line with options": {
			files: map[string]string{"sources.list": "# deb http://old.example bookworm main\n" +
				"deb [arch=amd64 signed-by=/keys/x.gpg] http://mirror.example/debian bookworm main contrib # ours\n"},
			uri: "http://mirror.example/debian", keyring: "/keys/x.gpg",
		},
		"one line": {
			files: map[string]string{"sources.list": "deb http://other.example stable main\ndeb-src http://mirror.example/src bookworm main\ndeb http://mirror.example/debian bookworm main\n"},
			uri:   "http://mirror.example/debian", keyring: defaultKeyring,
		},
		"a file that apt ignores": {
			files: map[string]string{"sources.list.d/debian.sources.bak": stanzas},
			err:   errNoArchive,
		},
		"disabled": {
			files: map[string]string{"sources.list.d/debian.sources": "Enabled: no\n" + stanzas[len("# a comment\n"):]},
			err:   errNoArchive,
		},
		"nothing": {err: errNoArchive},
	} {
		t.Run(name, func(t *testing.T) {
			etc := t.TempDir()
			for file, content := range tc.files {
				file = filepath.Join(etc, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			all, err := machineArchives(etc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := debianArchive(all, "bookworm")
			if !errors.Is(err, tc.err) || got.uri != tc.uri || got.keyring != tc.keyring {
				t.Errorf("got %q signed by %q, %v; want %q signed by %q, %v", got.uri, got.keyring, err, tc.uri, tc.keyring, tc.err)
			}
		})
	}
}

func TestUnionOfSetsIsSorted(t *testing.T) {
	got := Union(Set{Closure: []string{"b", "c"}, Newest: []string{"n"}}, Set{Closure: []string{"a", "b"}, Alone: []string{"z"}})
	if len(got.Closure) != 3 || got.Closure[0] != "a" || len(got.Alone) != 1 || len(got.Newest) != 1 {
		t.Errorf("got %+v", got)
	}
}
