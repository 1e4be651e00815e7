package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kept are the machine-wide sysctls that a kubelet or we change; wanted are ours.
var (
	kept = []string{
		"vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops", "kernel.keys.root_maxkeys",
		"kernel.keys.root_maxbytes", "fs.inotify.max_user_instances", "net.ipv4.ip_forward",
	}
	wanted = map[string]string{
		"fs.inotify.max_user_instances": "8192", // kubelet, containerd and every shim watch files
		"net.ipv4.ip_forward":           "1",    // the host routes between nodes, Pods and itself
	}
)

// Sysctls are settings below a /proc/sys, kept in a file while the cluster runs.
type Sysctls struct {
	Root string // /proc/sys
	File string // old values; it exists exactly while they are to be put back
}

func (s Sysctls) path(key string) string {
	return filepath.Join(s.Root, strings.ReplaceAll(key, ".", "/"))
}

// Set records the old values, unless a run before did, and sets ours. A sysctl that this kernel lacks is left out.
func (s Sysctls) Set() error {
	if _, err := os.Stat(s.File); errors.Is(err, fs.ErrNotExist) {
		if err := s.record(); err != nil {
			return fmt.Errorf("recording sysctls: %w", err)
		}
	}
	for key, value := range wanted {
		if err := os.WriteFile(s.path(key), []byte(value), 0o644); err != nil {
			return fmt.Errorf("setting sysctl %s: %w", key, err)
		}
	}
	return nil
}

func (s Sysctls) record() error {
	old := map[string]string{}
	for _, key := range kept {
		raw, err := os.ReadFile(s.path(key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		old[key] = strings.TrimSpace(string(raw))
	}
	raw, err := json.Marshal(old)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.File), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(s.File+".new", raw, 0o644); err != nil {
		return err
	}
	return os.Rename(s.File+".new", s.File)
}

// Restore puts the recorded values back and forgets them.
func (s Sysctls) Restore() error {
	raw, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var old map[string]string
	if err := json.Unmarshal(raw, &old); err != nil {
		return fmt.Errorf("reading %s: %w", s.File, err)
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if err := os.WriteFile(s.path(key), []byte(old[key]), 0o644); err != nil {
			return fmt.Errorf("restoring sysctl %s: %w", key, err)
		}
	}
	return os.Remove(s.File)
}
