// Package sourcetest serves a Git repository over http, https and ssh, as git itself does, and an OCI registry.
package sourcetest

import (
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repository is a working copy that is served.
type Repository struct {
	// Dir is the working copy, URL what to fetch from.
	Dir, URL string
	// CA is the certificate of a server that speaks https.
	CA []byte

	t testing.TB
}

// Serve makes an empty repository with branch main, and serves it until the test ends.
func Serve(t testing.TB) *Repository {
	t.Helper()
	r, backend := repository(t)
	s := httptest.NewServer(backend)
	t.Cleanup(s.Close)
	r.URL = s.URL + "/repo/.git"
	return r
}

// ServeTLS is Serve over https, to those whom allowed lets in.
func ServeTLS(t testing.TB, allowed func(*http.Request) bool) *Repository {
	t.Helper()
	r, backend := repository(t)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !allowed(q) {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	r.URL = s.URL + "/repo/.git"
	r.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return r
}

func repository(t testing.TB) (*Repository, http.Handler) {
	t.Helper()
	root := t.TempDir()
	r := &Repository{t: t, Dir: filepath.Join(root, "repo")}
	if err := os.Mkdir(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git("init", "-q", "-b", "main")
	return r, &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(r.Git("--exec-path")), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
	}
}

// Git runs git in the working copy and returns its output.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.Dir, "-c", "user.name=t", "-c", "user.email=t@example.test"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// Write writes a file of the working copy.
func (r *Repository) Write(name, content string) {
	r.t.Helper()
	name = filepath.Join(r.Dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// Commit writes a file, commits, and returns the commit's hash.
func (r *Repository) Commit(name, content string) string {
	r.t.Helper()
	r.Write(name, content)
	return r.CommitAll()
}

// CommitAll commits the working copy as it is and returns the commit's hash.
func (r *Repository) CommitAll() string {
	r.Git("add", "-A")
	r.Git("commit", "-q", "-m", "a commit")
	return strings.TrimSpace(r.Git("rev-parse", "HEAD"))
}
