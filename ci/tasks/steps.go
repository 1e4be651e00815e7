package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	clusterBin = ".cluster/bin/cluster"
	// cgo packages: the libvirt binding is loaded at run time, so no header is needed to build.
	libvirtTags = "libvirt_dlopen,libvirt_without_lxc,grpcnotrace"
)

// debian lists the packages that building and testing need, each with a file that shows that it is there.
var debian = map[string]string{
	"git": "/usr/bin/git", "gcc": "/usr/bin/gcc", "libc6-dev": "/usr/include/stdio.h", "make": "/usr/bin/make",
	"gnupg": "/usr/bin/gpg", "openssh-client": "/usr/bin/ssh-keygen",
	"protobuf-compiler": "/usr/bin/protoc", "libprotobuf-dev": "/usr/include/google/protobuf/timestamp.proto",
}

func (r *runner) packages() step {
	return step{"Debian packages", func(ctx context.Context) error {
		var missing []string
		for name, file := range debian {
			if _, err := os.Stat(file); err != nil {
				missing = append(missing, name)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if err := run(ctx, "apt-get", "-qq", "update"); err != nil {
			return err
		}
		install := append([]string{"-qq", "install", "-y", "--no-install-recommends"}, missing...)
		return command(ctx, []string{"DEBIAN_FRONTEND=noninteractive"}, "apt-get", install...).Run()
	}}
}

func (r *runner) programs() step {
	return step{"the dev cluster's programs", func(ctx context.Context) error {
		if err := buildCluster(ctx); err != nil {
			return err
		}
		return run(ctx, clusterBin, "build")
	}}
}

func buildCluster(ctx context.Context) error {
	out, err := filepath.Abs(clusterBin)
	if err != nil {
		return err
	}
	return run(ctx, "go", "-C", "ci/cluster", "build", "-o", out, ".")
}

func (r *runner) images() step {
	return step{"images", func(ctx context.Context) error { return run(ctx, "go", "run", "./ci/images", "build") }}
}

// verify boots the guest image and asks the launcher image's QEMU what it can do.
func (r *runner) verify() step {
	return r.program("images do what they are for", "./ci/images", "verify")
}

func (r *runner) up() step {
	return step{"the dev cluster", func(ctx context.Context) error {
		nodes := os.Getenv("NODES")
		if nodes == "" {
			nodes = "1"
		}
		return run(ctx, clusterBin, "up", "--nodes", nodes)
	}}
}

func (r *runner) load() step {
	return step{"images into the nodes", func(ctx context.Context) error {
		archives, err := filepath.Glob(".cluster/images/*.tar")
		if err != nil || len(archives) == 0 {
			return errors.Join(err, errors.New("no image was built"))
		}
		if err := run(ctx, clusterBin, append([]string{"import"}, archives...)...); err != nil {
			return err
		}
		return virtctl(ctx, filepath.Dir(clusterBin))
	}}
}

// virtctl builds it for the shell, into a directory, where it is a plugin of kubectl too. In a checkout it knows the
// commit that it is built of.
func virtctl(ctx context.Context, dir string) error {
	if err := run(ctx, "go", "build", "-buildvcs=auto", "-o", filepath.Join(dir, "virtctl"), "./cmd/virtctl"); err != nil {
		return err
	}
	plugin := filepath.Join(dir, "kubectl-virt")
	if err := os.Remove(plugin); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink("virtctl", plugin)
}

func (r *runner) down() step {
	return step{"taking the dev cluster down", func(ctx context.Context) error {
		if _, err := os.Stat(clusterBin); err != nil {
			if err := buildCluster(ctx); err != nil {
				return err
			}
		}
		return run(ctx, clusterBin, "down")
	}}
}

func (r *runner) nothingLeft() step {
	return step{"nothing is left on the machine", func(ctx context.Context) error {
		err := run(ctx, clusterBin, "check")
		r.count(err)
		return err
	}}
}

func (r *runner) program(name, path string, args ...string) step {
	return step{name, func(ctx context.Context) error {
		err := run(ctx, "go", append([]string{"run", path}, args...)...)
		r.count(err)
		return err
	}}
}

func (r *runner) count(err error) {
	if err != nil {
		r.failed++
		return
	}
	r.passed++
}

func (r *runner) format() step {
	return step{"gofmt", func(ctx context.Context) error {
		files, err := exec.CommandContext(ctx, "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
		if err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, "gofmt", append([]string{"-l"}, strings.Fields(string(files))...)...).CombinedOutput()
		if err != nil || len(out) > 0 {
			return errors.Join(err, fmt.Errorf("not formatted (run gofmt -w on them): %s", bytes.TrimSpace(out)))
		}
		return nil
	}}
}

func (r *runner) generated() step {
	return step{"generated code is current", func(ctx context.Context) error {
		err := run(ctx, "go", "run", "./ci/generate", "--check")
		r.count(err)
		return err
	}}
}

// packageLists returns the module's packages in two halves: most need no cgo and share the build cache of the images; those
// around the libvirt binding do.
func packageLists(ctx context.Context) (pure, cgo []string, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-tags", libvirtTags+",e2e", "./...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("listing packages: %w", err)
	}
	for _, p := range strings.Fields(string(out)) {
		switch {
		case strings.HasSuffix(p, "/launcher"), strings.HasSuffix(p, "/launcher/driver/libvirt"), strings.HasSuffix(p, "/cmd/virt-launcher"):
			cgo = append(cgo, p)
		default:
			pure = append(pure, p)
		}
	}
	return pure, cgo, nil
}

// both runs a checker on each half.
func both(ctx context.Context, check func(env []string, tags string, packages []string) error) error {
	pure, cgo, err := packageLists(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		check([]string{"CGO_ENABLED=0"}, "e2e", pure),
		check([]string{"CGO_ENABLED=1"}, libvirtTags+",libvirt", cgo))
}

func (r *runner) vet() step {
	return step{"go vet", func(ctx context.Context) error {
		return both(ctx, func(env []string, tags string, packages []string) error {
			return command(ctx, env, "go", append([]string{"vet", "-tags", tags}, packages...)...).Run()
		})
	}}
}

func (r *runner) staticcheck() step {
	return step{"staticcheck", func(ctx context.Context) error {
		bin, err := linter(ctx, "honnef.co/go/tools/cmd/staticcheck")
		if err != nil {
			return err
		}
		return both(ctx, func(env []string, tags string, packages []string) error {
			return command(ctx, env, bin, append([]string{"-tags", tags}, packages...)...).Run()
		})
	}}
}

// linter builds one of the linters of ci/lint, a module of its own, and returns the program's path.
func linter(ctx context.Context, tool string) (string, error) {
	bin, err := filepath.Abs(filepath.Join(".cluster", "lint", filepath.Base(tool)))
	if err != nil {
		return "", err
	}
	return bin, run(ctx, "go", "-C", "ci/lint", "build", "-o", bin, tool)
}

// vulnerabilities runs govulncheck where its database can be had; where it can't, that is said, as a fact about the
// machine and not about the code.
func (r *runner) vulnerabilities() step {
	return step{"govulncheck", func(ctx context.Context) error {
		if out, err := exec.CommandContext(ctx, "curl", "-fsS", "-m", "10", "-o", "/dev/null", "https://vuln.go.dev/index/db.json").CombinedOutput(); err != nil {
			fmt.Printf("the vulnerability database can't be reached from here: %s\n", bytes.TrimSpace(out))
			return nil
		}
		bin, err := linter(ctx, "golang.org/x/vuln/cmd/govulncheck")
		if err != nil {
			return err
		}
		return command(ctx, []string{"CGO_ENABLED=0"}, bin, "-tags", "e2e", "./cmd/virt-operator", "./cmd/virt-api", "./cmd/virt-controller", "./cmd/virt-handler", "./cmd/virtctl").Run()
	}}
}

// promql reads alerts and dashboard with Prometheus' own parser, in a module of its own.
func (r *runner) promql() step {
	return step{"Prometheus takes the alerts", func(ctx context.Context) error {
		err := run(ctx, "go", "-C", "ci/promql", "test", "-count=1", "./...")
		r.count(err)
		return err
	}}
}

// laws are not cached: they ask "go list".
func (r *runner) laws() step {
	return step{"the laws of the tree", func(ctx context.Context) error { return r.goTest(ctx, "-count=1", ".") }}
}

// unit runs all tests beside the code; the race detector needs cgo, so the fast run goes without both.
func (r *runner) unit(race string) step {
	return step{strings.TrimSpace("unit tests " + race), func(ctx context.Context) error {
		pure, cgo, err := packageLists(ctx)
		if err != nil {
			return err
		}
		args := []string{"-timeout", "30m"}
		if race != "" {
			args, pure = append(args, race, "-tags", libvirtTags), append(pure, cgo...)
		}
		return r.goTest(ctx, append(args, slices.DeleteFunc(pure, rootOrReal)...)...)
	}}
}

// rootOrReal are the packages that have steps of their own.
func rootOrReal(p string) bool {
	return p == "virtstack.io/virtstack" || strings.HasSuffix(p, "/ci/e2e")
}

// libvirt runs the driver's contract suite against libvirt and QEMU of the launcher image that was just built.
func (r *runner) libvirt() step {
	return r.program("the driver's contract on real libvirt", "./ci/images", "contract")
}

// flux builds the controllers of Flux that the end-to-end tests run: a module of its own, minutes the first time.
func (r *runner) flux() step {
	return step{"Flux's controllers", func(ctx context.Context) error {
		out, err := filepath.Abs(filepath.Dir(clusterBin))
		if err != nil {
			return err
		}
		return run(ctx, "go", "-C", "ci/flux", "build", "-ldflags", "-s -w", "-o", out+"/",
			"github.com/fluxcd/kustomize-controller", "github.com/fluxcd/source-controller")
	}}
}

func (r *runner) endToEnd() step {
	return step{"end to end", func(ctx context.Context) error {
		args := []string{"-tags", "e2e", "-count=1", "-timeout", "60m", "-parallel", "2", "-v"}
		if pick := os.Getenv("RUN"); pick != "" {
			args = append(args, "-run", pick)
		}
		return r.goTest(ctx, append(args, "./ci/e2e")...)
	}}
}
