package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"virtstack.io/virtstack/ci/images/component"
)

// Build constraints of the launcher's libvirt binding: it opens libvirt's libraries when it runs, so that neither
// headers nor libraries of libvirt are needed to build it, and it leaves out the driver that the image does not have.
// grpcnotrace leaves out gRPC's debug pages: with their templates the linker has to keep every exported method, which
// makes the launcher 24 MB instead of 17, and 7 MiB more of it resident.
const launcherTags = "libvirt_dlopen,libvirt_without_lxc,grpcnotrace"

// compilation says where programs go, and how they are built.
type compilation struct {
	dir   string
	env   []string
	flags string // of the linker
}

// compile builds packages beneath cmd or elsewhere into one directory, one file each, and returns those files. What is
// up to date is not linked again.
func (b *builder) compile(ctx context.Context, what compilation, packages ...string) ([]string, error) {
	dir := what.dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags", launcherTags, "-ldflags", what.flags, "-o", dir + "/"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), append(what.env, "GOOS=linux", "GOARCH=amd64")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building %s: %w\n%s", strings.Join(packages, " "), err, out)
	}
	var files []string
	for _, p := range packages {
		files = append(files, filepath.Join(dir, filepath.Base(p)))
	}
	return files, nil
}

// stamp is what the linker writes into the programs of a version.
type stamp struct {
	version  string // "" is the one in the source, so that a commit which changes no program changes no image either
	protocol string // of node agents and launchers; "" is the one in the source
	commit   commit // that a version was built of; without a version none is stamped, for the same reason
}

// flags leaves out symbols and stamps.
func (s stamp) flags() string {
	flags := "-s -w"
	const release = " -X virtstack.io/virtstack/machine/release."
	if s.version != "" {
		flags += release + "Version=" + s.version
	}
	if s.commit.hash != "" {
		flags += release + "Commit=" + s.commit.hash + release + "BuildDate=" + s.commit.date
	}
	if s.protocol != "" {
		flags += " -X virtstack.io/virtstack/api/guest/v1.newest=" + s.protocol
	}
	return flags
}

// commit is what a version is built of, and when that was made, in RFC 3339: a clock would make each build another.
type commit struct{ hash, date string }

// head returns the commit of the checkout in a directory, which must have no changes: who reads the commit of a version
// expects to find its source there.
func head(ctx context.Context, dir string) (commit, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "TZ=UTC")
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("asking Git for the commit of a version: git %s: %w", args[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	changes, err := git("status", "--porcelain")
	if err != nil {
		return commit{}, err
	}
	if changes != "" {
		return commit{}, fmt.Errorf("a version is built of a commit: commit these changes first\n%s", changes)
	}
	out, err := git("log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%H %cd")
	if err != nil {
		return commit{}, err
	}
	hash, date, _ := strings.Cut(out, " ")
	return commit{hash, date}, nil
}

// edition is one version of the programs and where they lie.
type edition struct {
	dir   string
	stamp stamp
}

// this is the version that is built; next has the same source and stands in for a release two minor versions later.
func (b *builder) this() edition {
	return edition{b.cached("bin"), stamp{version: b.version, commit: b.commit}}
}
func (b *builder) next() edition {
	return edition{b.cached("bin-next"), stamp{version: "v0.3.0", protocol: "3"}}
}

// components compiles what is in the component image.
func (b *builder) components(e edition) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var packages []string
		for _, name := range component.Binaries {
			packages = append(packages, "./cmd/"+name)
		}
		return b.compile(ctx, compilation{e.dir, []string{"CGO_ENABLED=0"}, e.stamp.flags()}, packages...)
	}
}

func (b *builder) launcher(e edition) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		if err := ensureCompiler(ctx); err != nil {
			return nil, err
		}
		return b.compile(ctx, compilation{e.dir, []string{"CGO_ENABLED=1"}, e.stamp.flags()}, "./cmd/virt-launcher")
	}
}

func (b *builder) compileGuestd(ctx context.Context) ([]string, error) {
	return b.compile(ctx, compilation{b.cached("bin"), []string{"CGO_ENABLED=0"}, b.this().stamp.flags()}, "./ci/images/guest/guestd")
}

// ensureCompiler installs a C compiler on a machine that has none: the libvirt binding is the one part that needs it.
func ensureCompiler(ctx context.Context) error {
	if _, err := exec.LookPath("gcc"); !errors.Is(err, exec.ErrNotFound) {
		return err
	}
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", "gcc", "libc6-dev"}} {
		if out, err := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("installing a C compiler, which virt-launcher needs: %w\n%s", err, out)
		}
	}
	return nil
}
