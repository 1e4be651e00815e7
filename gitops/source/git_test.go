package source_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"virtstack.io/virtstack/gitops/source"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

func of(r *sourcetest.Repository, ref source.Ref) source.Git {
	return source.Git{URL: r.URL, Ref: ref, Limits: source.DefaultLimits}
}

func TestEachKindOfRef(t *testing.T) {
	r := sourcetest.Serve(t)
	first := r.Commit("vm.yaml", "first")
	r.Git("tag", "v1.0.0")
	second := r.Commit("vm.yaml", "second")
	r.Git("tag", "-a", "-m", "two", "v1.2.0")
	third := r.Commit("vm.yaml", "third")
	for name, tc := range map[string]struct {
		ref                source.Ref
		revision, contents string
	}{
		"branch": {source.Ref{Branch: "main"}, "main@sha1:" + third, "third"},
		"tag":    {source.Ref{Tag: "v1.0.0"}, "v1.0.0@sha1:" + first, "first"},
		"semver": {source.Ref{SemVer: "1.x"}, "v1.2.0@sha1:" + second, "second"},
		"commit": {source.Ref{Commit: first}, "sha1:" + first, "first"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := of(r, tc.ref).Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got, err := fs.ReadFile(c.Files, "vm.yaml")
			if err != nil || string(got) != tc.contents || c.Revision != tc.revision {
				t.Errorf("got %q of %s, %v, want %q of %s", got, c.Revision, err, tc.contents, tc.revision)
			}
			known := of(r, tc.ref)
			known.Known = c.Revision
			if again, err := known.Fetch(t.Context()); name != "semver" && !errors.Is(err, source.ErrUnchanged) {
				t.Errorf("fetching a known revision again: got %v, %v, want ErrUnchanged", again, err)
			}
		})
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := sourcetest.Serve(t)
	r.Commit("vm.yaml", "x")
	c, err := of(r, source.Ref{Branch: "main"}).Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := of(r, source.Ref{Branch: "none"}).Fetch(t.Context()); err == nil {
		t.Fatal("an unknown branch was fetched")
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "checkout-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestUnknownRef(t *testing.T) {
	r := sourcetest.Serve(t)
	r.Commit("vm.yaml", "x")
	for name, ref := range map[string]source.Ref{
		"branch": {Branch: "none"}, "tag": {Tag: "none"}, "semver": {SemVer: ">=9"}, "commit": {Commit: strings.Repeat("a", 40)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := of(r, ref).Fetch(t.Context())
			if !errors.Is(err, source.ErrRef) || !strings.Contains(err.Error(), ref.String()) {
				t.Errorf("got %v, want ErrRef that names %s", err, ref)
			}
		})
	}
}

// A Bundle may be there before the first push.
func TestAnEmptyRepository(t *testing.T) {
	_, err := of(sourcetest.Serve(t), source.Ref{Branch: "main"}).Fetch(t.Context())
	if !errors.Is(err, source.ErrRef) || !strings.Contains(err.Error(), "the repository is empty") {
		t.Errorf("got %v, want ErrRef that says so", err)
	}
}

func TestLinksThatLeadOutAreRefused(t *testing.T) {
	for name, target := range map[string]string{"above": "../../../etc/passwd", "absolute": "/etc/passwd", "to the repository's own files": "../git/config"} {
		t.Run(name, func(t *testing.T) {
			r := sourcetest.Serve(t)
			if err := os.Symlink(target, filepath.Join(r.Dir, "evil.yaml")); err != nil {
				t.Fatal(err)
			}
			commit := r.CommitAll()
			r.Git("tag", "v1.0.0")
			for _, tc := range []struct {
				ref  source.Ref
				want string
			}{
				{source.Ref{Branch: "main"}, "main@sha1:" + commit}, {source.Ref{Tag: "v1.0.0"}, "v1.0.0@sha1:" + commit},
				{source.Ref{SemVer: "1.x"}, "sha1:" + commit}, {source.Ref{Commit: commit}, "sha1:" + commit},
			} {
				_, err := of(r, tc.ref).Fetch(t.Context())
				var refused *source.Refused
				if !errors.As(err, &refused) || !errors.Is(err, source.ErrRefused) || refused.Revision != tc.want {
					t.Errorf("%s: got %#v, want a refusal of %s", tc.ref, err, tc.want)
					continue
				}
				if !strings.Contains(err.Error(), "evil.yaml is a link that leads out") || strings.Count(err.Error(), r.URL) != 1 {
					t.Errorf("%s: got %v, want evil.yaml named, and the URL once", tc.ref, err)
				}
			}
		})
	}
}

func TestSizeIsBounded(t *testing.T) {
	r := sourcetest.Serve(t)
	r.Commit("big", strings.Repeat("x", 1<<20)) // packs to little: the checkout is what counts
	g := of(r, source.Ref{Branch: "main"})
	g.Limits.Bytes = 1 << 19
	if _, err := g.Fetch(t.Context()); !errors.Is(err, source.ErrRefused) {
		t.Errorf("a large file: got %v, want a refusal", err)
	}
	g.Limits = source.Limits{Bytes: 1 << 30, Files: 3}
	if _, err := g.Fetch(t.Context()); !errors.Is(err, source.ErrRefused) {
		t.Errorf("many files: got %v, want a refusal", err)
	}
}

// G5: an error never shows a credential, and none is sent in clear.
func TestCredentialsStaySecret(t *testing.T) {
	r := sourcetest.Serve(t)
	r.Commit("vm.yaml", "x")
	g := of(r, source.Ref{Branch: "main"})
	g.Credentials = map[string][]byte{"username": []byte("canary-user"), "password": []byte("canary-password")}
	_, err := g.Fetch(t.Context())
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want an error without the credentials", err)
	}
	g.URL = strings.Replace(r.URL, "http://", "http://canary-user:canary-password@", 1)
	if _, err := g.Fetch(t.Context()); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("credentials in the URL: got %v, want an error without them", err)
	}
}

func TestUnreachableServerEndsWithTheContext(t *testing.T) {
	block := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-q.Context().Done():
		case <-block:
		}
	}))
	defer s.Close()
	defer close(block)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (source.Git{URL: s.URL, Ref: source.Ref{Branch: "main"}, Limits: source.DefaultLimits}).Fetch(ctx); err == nil {
		t.Error("fetched from a server that doesn't answer")
	}
}
