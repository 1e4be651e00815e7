package libvirt

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Limits of a capability cache: one file for each QEMU binary, of about 100 KiB.
const (
	maxCacheFiles = 16
	maxCacheFile  = 1 << 20
)

var cacheName = regexp.MustCompile(`^[0-9a-f]{16,128}\.xml$`)

// CacheDir is where a driver with this directory has libvirt's capability cache.
func CacheDir(dir string) string {
	return filepath.Join(dir, "cache", "libvirt", "qemu", "cache", "capabilities")
}

// SeedCache stores a capability cache from an earlier run on the same node with the same image, so that libvirt need
// not ask QEMU for its capabilities again, which takes it about a second. It must be called before Define. libvirt
// checks what it finds and ignores what doesn't fit.
func SeedCache(dir string, files map[string][]byte) error {
	if len(files) == 0 {
		return nil
	}
	if len(files) > maxCacheFiles {
		return fmt.Errorf("storing the capability cache: %d files, want at most %d", len(files), maxCacheFiles)
	}
	cache := CacheDir(dir)
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return fmt.Errorf("storing the capability cache: %w", err)
	}
	for name, data := range files {
		if !cacheName.MatchString(name) || len(data) > maxCacheFile {
			return fmt.Errorf("storing the capability cache: %q of %d bytes is no cache file", name, len(data))
		}
		if err := os.WriteFile(filepath.Join(cache, name), data, 0o600); err != nil {
			return fmt.Errorf("storing the capability cache: %w", err)
		}
	}
	return nil
}
