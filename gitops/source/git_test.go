package source_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"virtstack.io/virtstack/gitops/source"
)

// repository is a working copy and the server that its directory is fetched from.
type repository struct {
	t        *testing.T
	dir, url string
}

func serve(t *testing.T) *repository {
	t.Helper()
	root := t.TempDir()
	r := &repository{t: t, dir: filepath.Join(root, "repo")}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git("init", "-q", "-b", "main")
	exec := strings.TrimSpace(r.git("--exec-path"))
	backend := &cgi.Handler{
		Path: filepath.Join(exec, "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
	}
	mux := http.NewServeMux()
	mux.Handle("/", backend)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	r.url = s.URL + "/repo/.git"
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=t", "-c", "user.email=t@example.test"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// commit writes a file and returns the commit's hash.
func (r *repository) commit(name, content string) string {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
	return r.commitAll()
}

func (r *repository) commitAll() string {
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "a commit")
	return strings.TrimSpace(r.git("rev-parse", "HEAD"))
}

func (r *repository) source(ref source.Ref) source.Git {
	return source.Git{URL: r.url, Ref: ref, Limits: source.DefaultLimits}
}

func TestEachKindOfRef(t *testing.T) {
	r := serve(t)
	first := r.commit("vm.yaml", "first")
	r.git("tag", "v1.0.0")
	second := r.commit("vm.yaml", "second")
	r.git("tag", "-a", "-m", "two", "v1.2.0")
	third := r.commit("vm.yaml", "third")
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
			c, err := r.source(tc.ref).Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got, err := fs.ReadFile(c.Files, "vm.yaml")
			if err != nil || string(got) != tc.contents || c.Revision != tc.revision {
				t.Errorf("got %q of %s, %v, want %q of %s", got, c.Revision, err, tc.contents, tc.revision)
			}
			known := r.source(tc.ref)
			known.Known = c.Revision
			if again, err := known.Fetch(t.Context()); name != "semver" && !errors.Is(err, source.ErrUnchanged) {
				t.Errorf("fetching a known revision again: got %v, %v, want ErrUnchanged", again, err)
			}
		})
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := serve(t)
	r.commit("vm.yaml", "x")
	c, err := r.source(source.Ref{Branch: "main"}).Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.source(source.Ref{Branch: "none"}).Fetch(t.Context()); err == nil {
		t.Fatal("an unknown branch was fetched")
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "checkout-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestUnknownRef(t *testing.T) {
	r := serve(t)
	r.commit("vm.yaml", "x")
	for name, ref := range map[string]source.Ref{
		"branch": {Branch: "none"}, "tag": {Tag: "none"}, "semver": {SemVer: ">=9"}, "commit": {Commit: strings.Repeat("a", 40)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.source(ref).Fetch(t.Context())
			if !errors.Is(err, source.ErrRef) || !strings.Contains(err.Error(), ref.String()) {
				t.Errorf("got %v, want ErrRef that names %s", err, ref)
			}
		})
	}
}

func TestLinksThatLeadOutAreRefused(t *testing.T) {
	for name, target := range map[string]string{"above": "../../../etc/passwd", "absolute": "/etc/passwd", "to the repository's own files": "../git/config"} {
		t.Run(name, func(t *testing.T) {
			r := serve(t)
			if err := os.Symlink(target, filepath.Join(r.dir, "evil.yaml")); err != nil {
				t.Fatal(err)
			}
			r.commitAll()
			_, err := r.source(source.Ref{Branch: "main"}).Fetch(t.Context())
			if !errors.Is(err, source.ErrRefused) || !strings.Contains(err.Error(), "evil.yaml") {
				t.Errorf("got %v, want a refusal that names evil.yaml", err)
			}
		})
	}
}

func TestSizeIsBounded(t *testing.T) {
	r := serve(t)
	r.commit("big", strings.Repeat("x", 1<<20)) // packs to little: the checkout is what counts
	g := r.source(source.Ref{Branch: "main"})
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
	r := serve(t)
	r.commit("vm.yaml", "x")
	g := r.source(source.Ref{Branch: "main"})
	g.Credentials = map[string][]byte{"username": []byte("canary-user"), "password": []byte("canary-password")}
	_, err := g.Fetch(t.Context())
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want an error without the credentials", err)
	}
	g.URL = strings.Replace(r.url, "http://", "http://canary-user:canary-password@", 1)
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
