package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"virtstack.io/virtstack/ci/cluster/await"
	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/proc"
)

// ctr runs containerd's client against a node's containerd, whose socket is reached through its process 1.
func ctr(ctx context.Context, d layout.Dir, id proc.ID, args ...string) error {
	socket := fmt.Sprintf("/proc/%d/root%s", id.PID, containerdSocket)
	out, err := exec.CommandContext(ctx, d.Program("ctr"), append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", args[0], err, out)
	}
	return nil
}

// stamp tells one state of an archive from another.
type stamp struct {
	Size int64
	Time time.Time
}

// Load imports the images into a node that was just started and lets it go on. It returns how many these were.
func Load(ctx context.Context, d layout.Dir, n layout.Node) (int, error) {
	id, ok := Running(d)[n]
	if !ok {
		return 0, errors.New(LastLines(d, n))
	}
	count, err := ImportAll(ctx, d, n, id)
	if err != nil {
		return 0, err
	}
	return count, os.WriteFile(n.Loaded(), nil, 0o644)
}

// ImportAll imports every archive of the images directory that the node doesn't have yet and returns how many these
// were. It waits for the node's containerd first.
func ImportAll(ctx context.Context, d layout.Dir, n layout.Node, id proc.ID) (int, error) {
	ready := func(ctx context.Context) (bool, error) {
		if !id.Alive() {
			return false, errors.New(LastLines(d, n))
		}
		return ctr(ctx, d, id, "version") == nil, nil
	}
	if err := await.True(ctx, "containerd of "+n.Name(), 100*time.Millisecond, ready); err != nil {
		return 0, err
	}
	archives, err := filepath.Glob(filepath.Join(d.Images(), "*.tar"))
	if err != nil {
		return 0, err
	}
	has := imported(n)
	before := maps.Clone(has)
	for _, file := range archives {
		fi, err := os.Stat(file)
		if err != nil {
			return 0, err
		}
		now := stamp{fi.Size(), fi.ModTime().UTC()}
		if has[fi.Name()] == now {
			continue
		}
		if err := ctr(ctx, d, id, "images", "import", file); err != nil {
			return 0, fmt.Errorf("importing %s into %s: %w", fi.Name(), n.Name(), err)
		}
		has[fi.Name()] = now
	}
	raw, err := json.Marshal(has)
	if err != nil {
		return 0, err
	}
	return changes(before, has), os.WriteFile(n.Imported(), raw, 0o644)
}

func changes(before, after map[string]stamp) int {
	count := 0
	for name, s := range after {
		if before[name] != s {
			count++
		}
	}
	return count
}

// imported reads what the node has; a record that can't be read only costs another import.
func imported(n layout.Node) map[string]stamp {
	has := map[string]stamp{}
	raw, err := os.ReadFile(n.Imported())
	if err == nil {
		err = json.Unmarshal(raw, &has)
	}
	if err != nil {
		return map[string]stamp{}
	}
	return has
}
