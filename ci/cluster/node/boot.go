package node

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/ci/cluster/config"
)

// boot does what a machine does before its services start.
func (s spec) boot() error {
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("setting the hostname: %w", err)
	}
	// No Pod of an earlier life holds an address any more, and nobody told the plugin.
	if err := os.RemoveAll("/var/lib/cni/networks"); err != nil {
		return err
	}
	conflist, err := os.ReadFile(filepath.Join(config.NodeConfig, "10-bridge.conflist"))
	if err != nil {
		return err
	}
	id := sha256.Sum256([]byte("virtstack " + s.Name))
	for file, content := range map[string]string{
		"/etc/hostname":                      s.Name + "\n",
		"/etc/machine-id":                    hex.EncodeToString(id[:16]) + "\n",
		"/etc/resolv.conf":                   s.Resolv, // often a link into the /run that is hidden now
		"/etc/cni/net.d/10-bridge.conflist":  string(conflist),
		"/etc/cdi/.keep":                     "",
		"/run/cdi/.keep":                     "",
		"/var/lib/kubelet/volumeplugins/.ok": "",
	} {
		if err := replace(file, content); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("turning on forwarding: %w", err)
	}
	return installPlugins(filepath.Join(config.NodeBin, "cni"), "/opt/cni/bin")
}

// replace writes a file anew, never through a link that was there.
func replace(file, content string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(file); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), 0o644)
}

// installPlugins copies the CNI plugins, so that tests may add their own beside them.
func installPlugins(from, to string) error {
	names, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, n := range names {
		if err := copyProgram(filepath.Join(from, n.Name()), filepath.Join(to, n.Name())); err != nil {
			return fmt.Errorf("installing CNI plugin: %w", err)
		}
	}
	return nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}
