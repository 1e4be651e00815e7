package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"virtstack.io/virtstack/ci/images/launcher"
)

// contractDeadline is far above what the suite takes on a busy machine, below a minute.
const contractDeadline = 10 * time.Minute

// goldens are the domains that the launcher makes of the VMIs of its tests.
const goldens = "launcher/domain/testdata"

// contract runs the suite that every driver of guests has to pass on the launcher image's libvirt.
func (b *builder) contract(ctx context.Context) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	binary, err := b.compileContract(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, contractDeadline)
	defer cancel()
	start := time.Now()
	suite := launcher.Suite{Binary: binary, Goldens: goldens}
	if err := launcher.Contract(ctx, b.packages, suite, b.cache, b.log); err != nil {
		return fmt.Errorf("the driver's contract on libvirt: %w", err)
	}
	fmt.Fprintf(b.log, "the driver's contract on libvirt: kept (%.1fs)\n", time.Since(start).Seconds())
	return nil
}

func (b *builder) compileContract(ctx context.Context) (string, error) {
	if err := ensureCompiler(ctx); err != nil {
		return "", err
	}
	if err := os.MkdirAll(b.cached("bin"), 0o755); err != nil {
		return "", err
	}
	binary := b.cached("bin", "contract.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-buildvcs=false", "-tags", "libvirt,"+launcherTags, "-o", binary, "./launcher/driver/libvirt")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the driver's contract: %w\n%s", err, out)
	}
	return binary, nil
}
