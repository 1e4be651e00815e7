package main

import (
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	vms   = 1000
	shard = 50

	text = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: vm-%04d, namespace: %s}
spec:
  runStrategy: Halted
  template:
    spec:
      domain:
        cpu: {cores: %d}
        memory: {guest: 1Gi}
        devices: {disks: [{name: root, disk: {bus: virtio}}], interfaces: [{name: default, masquerade: {}}]}
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, containerDisk: {image: "r.example/x:1"}}]
`
)

// layout is how the VMs lie in the repository.
type layout struct {
	name, says string
	sharded    bool
}

var layouts = []layout{
	{"sharded", fmt.Sprintf("%d VMs, %d to a directory with a kustomization of its own, as in `overlays/flux`", vms, shard), true},
	{"plain", fmt.Sprintf("%d VMs in one directory, without a kustomization", vms), false},
}

func (l layout) file(i int) string {
	if l.sharded {
		return fmt.Sprintf("vms/team-%02d/vm-%04d.yaml", i/shard, i)
	}
	return fmt.Sprintf("vms/vm-%04d.yaml", i)
}

// repository is a working copy that is served.
type repository struct{ dir, url, namespace string }

// serve serves the repositories over HTTP until the process ends.
func (b *bench) serve() error {
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return err
	}
	b.git = filepath.Join(b.dir, "git")
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + b.git, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + b.dir},
	}
	b.server = httptest.NewServer(backend).URL
	return os.Mkdir(b.git, 0o755)
}

func (b *bench) repository(lay layout, namespace string) (*repository, error) {
	r := &repository{filepath.Join(b.git, namespace), b.server + "/" + namespace + "/.git", namespace}
	for i := range vms {
		if err := r.write(lay, i, 1); err != nil {
			return nil, err
		}
	}
	if lay.sharded {
		for i := 0; i < vms; i += shard {
			k := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
			for j := range shard {
				k += "- " + filepath.Base(lay.file(i+j)) + "\n"
			}
			if err := os.WriteFile(filepath.Join(r.dir, filepath.Dir(lay.file(i)), "kustomization.yaml"), []byte(k), 0o600); err != nil {
				return nil, err
			}
		}
	}
	_, err := r.run("init", "-q", "-b", "main")
	if err == nil {
		err = r.commit("VMs")
	}
	return r, err
}

func (r *repository) write(lay layout, i, cores int) error {
	name := filepath.Join(r.dir, lay.file(i))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, fmt.Appendf(nil, text, i, r.namespace, cores), 0o600)
}

// change commits another number of cores for one VM.
func (r *repository) change(lay layout) error {
	if err := r.write(lay, vms/2, 2); err != nil {
		return err
	}
	return r.commit("Change one")
}

func (r *repository) commit(message string) error {
	if _, err := r.run("add", "-A"); err != nil {
		return err
	}
	_, err := r.run("-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", message)
	return err
}

func (r *repository) head() (string, error) { return r.run("rev-parse", "HEAD") }

func (r *repository) run(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", r.dir}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
