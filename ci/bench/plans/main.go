// Command plans measures `virtctl plan` over 1,000 VMs in one Git repository, in one kustomization and in shards of 50, with
// none, one and all of them changed, and prints a table. It needs no cluster.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"virtstack.io/virtstack/virtctl"
)

const (
	vms   = 1000
	shard = 50

	text = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: vm-%04d, namespace: team}
spec:
  runStrategy: Always
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

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "plan-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nothing of it is kept
	if err := write(dir, vms, 1); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "VMs"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	fmt.Printf("| %d VMs, changed | whole repository, s | one shard of %d, s |\n| --- | --- | --- |\n", vms, shard)
	for _, changed := range []int{0, 1, vms} {
		if err := write(dir, changed, 2); err != nil {
			return err
		}
		whole, err := plan(dir)
		if err != nil {
			return err
		}
		one, err := plan(filepath.Join(dir, "00"))
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %.2f | %.2f |\n", changed, whole.Seconds(), one.Seconds())
	}
	return nil
}

// write writes the first n VMs, each with as many cores.
func write(dir string, n, cores int) error {
	for i := range n {
		at := filepath.Join(dir, fmt.Sprintf("%02d", i/shard))
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(at, fmt.Sprintf("vm-%04d.yaml", i)), fmt.Appendf(nil, text, i, cores), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func plan(dir string) (time.Duration, error) {
	var out, errOut bytes.Buffer
	start := time.Now()
	code := virtctl.Run(context.Background(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, []string{"virtctl", "plan", dir})
	if code != 0 && code != 2 {
		return 0, fmt.Errorf("plan ended with %d: %s", code, errOut.String())
	}
	return time.Since(start), nil
}
