package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// GitPort is where the dev cluster's Git server listens on HostAddress.
const GitPort = 3080

// GitURL is a repository's address, the same from Pods and from the shell.
func GitURL(repo string) string {
	return fmt.Sprintf("http://%s:%d/%s.git", HostAddress, GitPort, repo)
}

// marker is how "make down" knows a process of the cluster; source: ci/cluster/proc.
const marker = "VIRTSTACK_CLUSTER"

// StartGitServer starts the Git server unless it runs. It outlives the caller and ends with the cluster. What else
// listens on its port is an error.
func (l *Lab) StartGitServer(ctx context.Context) error {
	return l.startGitServer(ctx, net.JoinHostPort(HostAddress, strconv.Itoa(GitPort)), filepath.Join(l.State(), "git"))
}

func (l *Lab) startGitServer(ctx context.Context, addr, root string) error {
	if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		return errors.Join(conn.Close(), serves(ctx, addr, root))
	}
	bin := filepath.Join(l.State(), "bin", "gitserver")
	if _, err := l.Run(ctx, "go", "build", "-o", bin, "./ci/gitserver"); err != nil {
		return err
	}
	for _, dir := range []string{root, filepath.Join(l.State(), "logs")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	log, err := os.Create(filepath.Join(l.State(), "logs", "gitserver.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(bin, "-root", root, "-listen", addr)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(os.Environ(), marker+"="+l.State())
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := served(ctx, 10*time.Second, "the Git server", addr); err != nil {
		return err
	}
	return serves(ctx, addr, root)
}

// serves asks what listens at an address whether it is the Git server of the repositories below root, and says what it
// is if not.
func serves(ctx context.Context, addr, root string) error {
	taken := fmt.Errorf("%s is taken by another program: the Git server of %s can't be there until it ends", addr, root)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w (%w)", taken, err)
	}
	defer answer.Body.Close()
	switch other := answer.Header.Get("Git-Project-Root"); other {
	case root:
		return nil
	case "":
		return taken
	default:
		return fmt.Errorf("%w: it is the Git server of %s", taken, other)
	}
}

// served waits until something listens at an address.
func served(ctx context.Context, limit time.Duration, what, addr string) error {
	return Until(ctx, limit, what, func(context.Context) (bool, string, error) {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false, "", err
		}
		return true, "", conn.Close()
	})
}

// Repo is a clone of one of the Git server's repositories.
type Repo struct {
	Dir, URL string
}

// Clone clones the repository into dir, which is emptied first; a new repository has no commit.
func Clone(ctx context.Context, repo, dir string) (*Repo, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	r := &Repo{dir, GitURL(repo)}
	if _, err := git(ctx, "", "clone", "--quiet", r.URL, dir); err != nil {
		return nil, err
	}
	_, err := git(ctx, dir, "checkout", "--quiet", "-B", "main")
	return r, err
}

// Commit writes the files (path to content; nil removes), commits what changed and pushes it. It returns the commit's
// hash. Nothing to commit is an error.
func (r *Repo) Commit(ctx context.Context, message string, files map[string][]byte) (string, error) {
	for path, content := range files {
		if err := r.write(path, content); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{{"add", "--all"}, {"commit", "--quiet", "-m", message}, {"push", "--quiet", "origin", "main"}} {
		if _, err := git(ctx, r.Dir, args...); err != nil {
			return "", err
		}
	}
	return git(ctx, r.Dir, "rev-parse", "HEAD")
}

func (r *Repo) write(path string, content []byte) error {
	path = filepath.Join(r.Dir, path)
	if content == nil {
		return os.Remove(path)
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "user.name=virtstack", "-c", "user.email=virtstack@localhost"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
