package source_test

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"virtstack.io/virtstack/gitops/source"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

// served returns the artifact that an archive is.
func served(t *testing.T, archive []byte) source.Artifact {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/a.tar.gz":
			_, _ = w.Write(archive)
		case "/moved":
			http.Redirect(w, q, "/a.tar.gz", http.StatusFound)
		default:
			http.NotFound(w, q)
		}
	}))
	t.Cleanup(s.Close)
	return source.Artifact{
		Of: "GitRepository team/vms", URL: s.URL + "/a.tar.gz?sig=canary", Revision: "main@sha1:abc",
		Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(archive)), Limits: source.DefaultLimits,
	}
}

// An archive counts by its digest, which is checked before anything is unpacked, and never by where it came from: another
// one in the same place is refused (threats G3, G9).
func TestTheArtifactOfASource(t *testing.T) {
	a := served(t, sourcetest.Archive(t, sourcetest.File("./dir/../vm.yaml", "x"), sourcetest.Link("dir/link", "../vm.yaml")))
	holds(t, a, "main@sha1:abc", "x")
	known := a
	known.Known = a.Revision
	refuses(t, known, source.ErrUnchanged)
	other := a
	other.Digest = "sha256:" + strings.Repeat("0", 64)
	refuses(t, other, source.ErrRefused, "GitRepository team/vms", "main@sha1:abc", "and not sha256:0000")
	for _, digest := range []string{"", "sha256:12", "md5:" + strings.Repeat("0", 32)} {
		other.Digest = digest
		refuses(t, other, source.ErrRefused, "must be sha256, sha384 or sha512")
	}
	for _, path := range []string{"/none", "/moved"} {
		gone := a
		gone.URL = strings.Replace(a.URL, "/a.tar.gz", path, 1)
		refuses(t, gone, nil, "GitRepository team/vms", "the server answers ")
	}
	closed := a
	closed.URL = "http://127.0.0.1:1/a.tar.gz?sig=canary"
	refuses(t, closed, nil, "connection refused")
	closed.URL = "file:///etc/passwd"
	refuses(t, closed, source.ErrRefused, "must be http or https")
	closed.URL = "http://me:canary@127.0.0.1:1/a.tar.gz"
	refuses(t, closed, source.ErrRefused, "hold no credentials")
}

// G2: nothing of an archive is written outside, and what could lead a reader outside is refused.
func TestArchivesThatLeadOut(t *testing.T) {
	of := func(kind byte, name, target string) sourcetest.Entry {
		return sourcetest.Entry{Header: tar.Header{Name: name, Typeflag: kind, Linkname: target, Mode: 0o644}}
	}
	for name, entries := range map[string][]sourcetest.Entry{
		"above":           {sourcetest.File("../evil", "x")},
		"above, later":    {sourcetest.File("a/../../evil", "x")},
		"absolute":        {sourcetest.File("/evil", "x")},
		"a link above":    {sourcetest.Link("evil", "../../etc/passwd")},
		"a link to root":  {sourcetest.Link("evil", "/etc/passwd")},
		"a hard link":     {of(tar.TypeLink, "evil", "/etc/passwd")},
		"a device":        {of(tar.TypeChar, "evil", "")},
		"a pipe":          {of(tar.TypeFifo, "evil", "")},
		"a long path":     {sourcetest.File(strings.Repeat("evil/", 300)+"x", "x")},
		"over a link out": {sourcetest.Link("a", "b"), sourcetest.Link("b", ".."), sourcetest.File("a/evil", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			a := served(t, sourcetest.Archive(t, entries...))
			_, err := a.Fetch(t.Context())
			var refused *source.Refused
			if !errors.As(err, &refused) || !errors.Is(err, source.ErrRefused) || refused.Revision != a.Revision {
				t.Errorf("got %v, want a refusal of %s", err, a.Revision)
			}
		})
	}
	for name, archive := range map[string][]byte{"no gzip": []byte("x"), "cut": sourcetest.Archive(t, sourcetest.File("a", strings.Repeat("x", 1000)))[:60]} {
		t.Run(name, func(t *testing.T) { refuses(t, served(t, archive), source.ErrRefused, "gzip") })
	}
}

func TestAnArchiveIsBounded(t *testing.T) {
	a := served(t, sourcetest.Archive(t, sourcetest.File("big", strings.Repeat("x", 1<<20)))) // packs to little
	a.Limits.Bytes = 1 << 19
	refuses(t, a, source.ErrRefused, "more than 524288 bytes")
	a = served(t, sourcetest.Archive(t, sourcetest.File("a/b/c/d", "x")))
	a.Limits.Files = 4
	holdsFile(t, a, "a/b/c/d")
	a.Limits.Files = 3
	refuses(t, a, source.ErrRefused, "more than 3 files")
	again := sourcetest.Entry{Header: tar.Header{Name: "a", Typeflag: tar.TypeDir, Mode: 0o755}}
	a = served(t, sourcetest.Archive(t, slices.Repeat([]sourcetest.Entry{again}, 1000)...)) // which write one directory
	a.Limits = source.Limits{Bytes: 1 << 16, Files: 10}
	refuses(t, a, source.ErrRefused, "bytes")
}

func holdsFile(t *testing.T, s source.Source, name string) {
	t.Helper()
	c, err := s.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fs.Stat(c.Files, name); err != nil {
		t.Error(err)
	}
}
