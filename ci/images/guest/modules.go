package guest

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"virtstack.io/virtstack/ci/images/rootfs"
)

// wantedModules is what the guest loads at boot beyond what Debian's cloud kernel has built in: every kind of disk,
// network and channel that a VM can be given, and the power button.
var wantedModules = []string{
	"button", "evdev", "virtio_net", "virtio_blk", "virtio_scsi", "sd_mod", "sr_mod", "ahci", "isofs",
	"virtio_balloon", "virtio_console", "virtio_mem", "virtio-rng", "virtio_input", "vmw_vsock_virtio_transport", "i6300esb", "efivarfs",
}

// modules is the directory of one kernel's modules.
type modules struct {
	files   map[string]string // name → compressed file
	busybox string            // which decompresses
	order   []string          // what was added, dependencies first
	done    map[string]bool
}

func findModules(dir, busybox string) (*modules, error) {
	m := &modules{files: map[string]string{}, busybox: busybox, done: map[string]bool{}}
	err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(file), ".ko.xz"); ok {
			m.files[moduleName(name)] = file
		}
		return err
	})
	if err == nil && len(m.files) == 0 {
		err = errors.New("no modules")
	}
	if err != nil {
		return nil, fmt.Errorf("reading kernel modules beneath %s: %w", dir, err)
	}
	return m, nil
}

// moduleName is how the kernel spells it: files have dashes, too.
func moduleName(name string) string { return strings.ReplaceAll(strings.TrimSpace(name), "-", "_") }

// add copies a module and all it depends on. A name without a file is built into the kernel.
func (m *modules) add(to *rootfs.Tree, name string) error {
	name = moduleName(name)
	file, ok := m.files[name]
	if !ok || m.done[name] {
		return nil
	}
	m.done[name] = true
	module, err := exec.Command(m.busybox, "xzcat", file).Output()
	if err != nil {
		return fmt.Errorf("decompressing module %s: %w", name, err)
	}
	depends, err := moduleDepends(module)
	if err != nil {
		return fmt.Errorf("reading module %s: %w", name, err)
	}
	for _, d := range depends {
		if err := m.add(to, d); err != nil {
			return err
		}
	}
	to.File("usr/lib/modules/"+name+".ko", module, 0o644)
	m.order = append(m.order, name)
	return nil
}

// moduleDepends reads the modules that must be loaded first from the section modinfo, which holds zero-ended "key=value".
func moduleDepends(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for field := range strings.SplitSeq(string(info), "\x00") {
		if names, ok := strings.CutPrefix(field, "depends="); ok && names != "" {
			return strings.Split(names, ","), nil
		}
	}
	return nil, nil
}
