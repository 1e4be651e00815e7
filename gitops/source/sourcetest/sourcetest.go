// Package sourcetest serves a Git repository over http as git itself does.
package sourcetest

import (
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

	t testing.TB
}

// Serve makes an empty repository with branch main, and serves it until the test ends.
func Serve(t testing.TB) *Repository {
	t.Helper()
	root := t.TempDir()
	r := &Repository{t: t, Dir: filepath.Join(root, "repo")}
	if err := os.Mkdir(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git("init", "-q", "-b", "main")
	libexec := strings.TrimSpace(r.Git("--exec-path"))
	backend := &cgi.Handler{
		Path: filepath.Join(libexec, "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
	}
	s := httptest.NewServer(backend)
	t.Cleanup(s.Close)
	r.URL = s.URL + "/repo/.git"
	return r
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

// Commit writes a file, commits, and returns the commit's hash.
func (r *Repository) Commit(name, content string) string {
	r.t.Helper()
	name = filepath.Join(r.Dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
	return r.CommitAll()
}

// CommitAll commits the working copy as it is and returns the commit's hash.
func (r *Repository) CommitAll() string {
	r.Git("add", "-A")
	r.Git("commit", "-q", "-m", "a commit")
	return strings.TrimSpace(r.Git("rev-parse", "HEAD"))
}
