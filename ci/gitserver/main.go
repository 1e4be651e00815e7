// Command gitserver serves bare repositories over HTTP: clone, fetch and push, no authentication. It is for the demo
// and the tests; a new repository is made by the first request for it.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var repository = regexp.MustCompile(`^/([a-z0-9][a-z0-9-]*\.git)/`)

func main() {
	root := flag.String("root", "", "directory that holds the bare repositories")
	addr := flag.String("listen", "127.0.0.1:0", "address to serve on")
	flag.Parse()
	if err := serve(*root, *addr); err != nil {
		log.Fatal(err)
	}
}

func serve(root, addr string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return fmt.Errorf("finding git: %w", err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=git", "HOME=" + root},
	}
	log.Printf("serving %s on http://%s", root, addr)
	return http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Git-Project-Root", root) // whoever asks knows whose repositories these are; source: ci/lab
		m := repository.FindStringSubmatch(r.URL.Path)
		if m == nil {
			http.NotFound(w, r)
			return
		}
		if err := ensure(filepath.Join(root, m[1])); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		backend.ServeHTTP(w, r)
	}))
}

// ensure makes a bare repository that takes pushes, also forced ones, unless it is there.
func ensure(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return nil
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=main", dir},
		{"-C", dir, "config", "http.receivepack", "true"},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}
