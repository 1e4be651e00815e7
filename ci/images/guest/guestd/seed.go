package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"virtstack.io/virtstack/ci/images/guest/guestd/seed"
)

// applySeed sets hostname, password and keys, and leaves the commands for the boot script in /run/runcmd, because they
// run after the network is up.
func applySeed(dir string) error {
	s, err := readSeed(dir)
	if err != nil {
		return err
	}
	if s.Hostname != "" {
		if err := syscall.Sethostname([]byte(s.Hostname)); err != nil {
			return fmt.Errorf("setting hostname %q: %w", s.Hostname, err)
		}
		if err := os.WriteFile("/run/seed", nil, 0o644); err != nil {
			return err
		}
	}
	if s.Password != "" {
		if err := setPassword(s.Password); err != nil {
			return err
		}
	}
	keys := strings.Join(append(s.Keys, ""), "\n")
	if err := os.MkdirAll("/root/.ssh", 0o700); err != nil {
		return err
	}
	if err := os.WriteFile("/root/.ssh/authorized_keys", []byte(keys), 0o600); err != nil {
		return err
	}
	if s.Script == "" {
		return nil
	}
	return os.WriteFile("/run/runcmd", []byte(s.Script), 0o700)
}

func readSeed(dir string) (seed.Seed, error) {
	user, err := os.ReadFile(filepath.Join(dir, "user-data"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return seed.Seed{}, err
	}
	meta, err := os.ReadFile(filepath.Join(dir, "meta-data"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return seed.Seed{}, err
	}
	return seed.Parse(user, meta)
}

func setPassword(password string) error {
	mkpasswd := exec.Command("/bin/busybox", "mkpasswd", "-m", "sha256", "-P", "0")
	mkpasswd.Stdin = strings.NewReader(password + "\n")
	hash, err := mkpasswd.Output()
	if err != nil {
		return fmt.Errorf("hashing the password: %w", err)
	}
	return os.WriteFile("/etc/shadow", fmt.Appendf(nil, "root:%s:19000:0:99999:7:::\n", bytes.TrimSpace(hash)), 0o600)
}
