// Package host knows what the machine under a node can do for guests: facts, read once, that the node agent publishes
// and hands to launchers.
package host

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// Bounds of what the launcher image's probe may leave, in bytes and files: the image can be replaced by configuration.
const (
	maxFile  = 4 << 20
	maxCache = 6 << 20
	maxFiles = 64
)

// Facts are what a node can do.
type Facts struct {
	// KVM is there; else guests are emulated.
	KVM bool
	// Realtime is set where the kernel lets realtime tasks use all of a CPU's time.
	Realtime bool
	// Host is libvirt's view of the machine.
	Host libvirtxml.Caps
	// Emulated is what guests may have that are emulated, Accelerated what those may that run on KVM: nil where the probe
	// could not open it.
	Emulated    libvirtxml.DomainCaps
	Accelerated *libvirtxml.DomainCaps
	// Cache are the files of libvirt's QEMU capability cache, by their names without a directory.
	Cache map[string][]byte
}

// Read gathers the facts. root is the node's root as this process sees it, for /dev and /proc; probe is where
// "virt-launcher probe" wrote: capabilities.xml, domcapabilities-{kvm,qemu}.xml and cache/.
func Read(root, probe fs.FS) (Facts, error) {
	f := Facts{Cache: map[string][]byte{}}
	if _, err := fs.Stat(root, "dev/kvm"); err == nil {
		f.KVM = true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Facts{}, fmt.Errorf("looking for /dev/kvm: %w", err)
	}
	// Kernels without realtime groups have no such file.
	if limit, err := read(root, "proc/sys/kernel/sched_rt_runtime_us", 64); err == nil {
		f.Realtime = strings.TrimSpace(string(limit)) == "-1"
	}
	if err := unmarshal(probe, "capabilities.xml", &f.Host); err != nil {
		return Facts{}, err
	}
	if err := unmarshal(probe, "domcapabilities-qemu.xml", &f.Emulated); err != nil {
		return Facts{}, err
	}
	if _, err := fs.Stat(probe, "domcapabilities-kvm.xml"); f.KVM && err == nil {
		f.Accelerated = &libvirtxml.DomainCaps{}
		if err := unmarshal(probe, "domcapabilities-kvm.xml", f.Accelerated); err != nil {
			return Facts{}, err
		}
	}
	return f, f.readCache(probe)
}

// Domain returns what guests may have, which are emulated or run on KVM. Of a KVM that the probe could not open, what
// emulation can do is the best that is known.
func (f Facts) Domain(emulated bool) *libvirtxml.DomainCaps {
	if f.Accelerated != nil && !emulated {
		return f.Accelerated
	}
	return &f.Emulated
}

func (f Facts) readCache(probe fs.FS) error {
	entries, err := fs.ReadDir(probe, "cache")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the capability cache: %w", err)
	}
	left := maxCache
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		b, err := read(probe, path.Join("cache", e.Name()), left)
		if err != nil {
			return fmt.Errorf("reading the capability cache: %w", err)
		}
		if left -= len(b); len(f.Cache) == maxFiles {
			return fmt.Errorf("the capability cache has more than %d files", maxFiles)
		}
		f.Cache[e.Name()] = b
	}
	return nil
}

func unmarshal(dir fs.FS, name string, into any) error {
	b, err := read(dir, name, maxFile)
	if err == nil {
		err = xml.Unmarshal(b, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s of the probe: %w", name, err)
	}
	return nil
}

// read reads a file of at most limit bytes.
func read(dir fs.FS, name string, limit int) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(b) > limit {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("more than %d bytes", limit)}
	}
	return b, err
}

// Probe opens the probe's directory. What lies outside is out of reach whatever links are in it: another container
// wrote it.
func Probe(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the probe's directory: %w", err)
	}
	return root.FS(), nil
}
