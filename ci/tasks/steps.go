package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	clusterBin = ".cluster/bin/cluster"
	// cgo packages: the libvirt binding is loaded at run time, so no header is needed to build.
	libvirtTags = "libvirt_dlopen,libvirt_without_lxc"
)

// debian lists the packages that building and testing need, each with a file that shows that it is there.
var debian = map[string]string{
	"git": "/usr/bin/git", "gcc": "/usr/bin/gcc", "libc6-dev": "/usr/include/stdio.h", "make": "/usr/bin/make",
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
		return run(ctx, "go", "build", "-o", ".cluster/bin/virtctl", "./cmd/virtctl")
	}}
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

// vet includes the code behind the tags of the real tests; cgo is on because the libvirt binding is part of it.
func (r *runner) vet() step {
	return step{"go vet", func(ctx context.Context) error {
		return command(ctx, []string{"CGO_ENABLED=1"}, "go", "vet", "-tags", libvirtTags+",e2e,libvirt", "./...").Run()
	}}
}

func (r *runner) staticcheck() step {
	return step{"staticcheck", func(ctx context.Context) error {
		return lint(ctx, "honnef.co/go/tools/cmd/staticcheck", "-tags", libvirtTags+",e2e,libvirt", "./...")
	}}
}

// lint builds one of the linters of ci/lint, a module of its own, and runs it on this one.
func lint(ctx context.Context, tool string, args ...string) error {
	bin, err := filepath.Abs(filepath.Join(".cluster", "lint", filepath.Base(tool)))
	if err != nil {
		return err
	}
	if err := run(ctx, "go", "-C", "ci/lint", "build", "-o", bin, tool); err != nil {
		return err
	}
	return command(ctx, []string{"CGO_ENABLED=1"}, bin, args...).Run()
}

// vulnerabilities runs govulncheck where its database can be had; where it can't, that is said, as a fact about the
// machine and not about the code.
func (r *runner) vulnerabilities() step {
	return step{"govulncheck", func(ctx context.Context) error {
		if out, err := exec.CommandContext(ctx, "curl", "-fsS", "-m", "10", "-o", "/dev/null", "https://vuln.go.dev/index/db.json").CombinedOutput(); err != nil {
			fmt.Printf("the vulnerability database can't be reached from here: %s\n", bytes.TrimSpace(out))
			return nil
		}
		return lint(ctx, "golang.org/x/vuln/cmd/govulncheck", "-tags", libvirtTags, "./...")
	}}
}

// laws are not cached: they ask "go list".
func (r *runner) laws() step {
	return step{"the laws of the tree", func(ctx context.Context) error { return r.goTest(ctx, "-count=1", ".") }}
}

func (r *runner) unit(race string) step {
	return step{strings.TrimSpace("unit tests " + race), func(ctx context.Context) error {
		args := []string{"-tags", libvirtTags, "-timeout", "15m"}
		if race != "" {
			args = append(args, race)
		}
		return r.goTest(ctx, append(args, "./...")...)
	}}
}

// libvirt runs the driver's contract suite against libvirt and QEMU of the launcher image that was just built.
func (r *runner) libvirt() step {
	return step{"the driver's contract on real libvirt", func(ctx context.Context) error {
		return r.goTest(ctx, "-tags", libvirtTags+",libvirt", "-count=1", "-timeout", "10m", "./launcher/driver/libvirt")
	}}
}

func (r *runner) endToEnd() step {
	return step{"end to end", func(ctx context.Context) error {
		args := []string{"-tags", "e2e", "-count=1", "-timeout", "40m", "-v"}
		if pick := os.Getenv("RUN"); pick != "" {
			args = append(args, "-run", pick)
		}
		return r.goTest(ctx, append(args, "./ci/e2e")...)
	}}
}
