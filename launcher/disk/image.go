package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/launcher/domain"
)

// diskDir is where a containerDisk has its one image unless its owner says otherwise; source: contract of KubeVirt.
const diskDir = "disk"

// qcow2 header fields; source: QEMU's docs/interop/qcow2.rst.
const (
	qcow2Magic       = 0x514649fb
	qcow2HeaderBytes = 80
	versionOffset    = 4
	backingOffset    = 8
	cryptOffset      = 32
	featuresOffset   = 72
	externalDataFile = 1 << 2
)

// image returns the disk image in the root file system of a containerDisk: the file at path, or the only one in /disk.
// A path that leads out is refused by os.Root.
func image(dir, path string) (domain.Source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return domain.Source{}, fmt.Errorf("opening the image: %w", err)
	}
	defer root.Close()
	name := strings.TrimPrefix(path, "/")
	if path == "" {
		if name, err = only(root); err != nil {
			return domain.Source{}, err
		}
	}
	f, err := regular(root, name)
	if err != nil {
		return domain.Source{}, err
	}
	defer f.Close()
	format, err := Format(f)
	if err != nil {
		return domain.Source{}, fmt.Errorf("/%s: %w", name, err)
	}
	return domain.Source{Path: filepath.Join(dir, name), Format: format}, nil
}

// only returns the name of the one file in /disk.
func only(root *os.Root) (string, error) {
	entries, err := fs.ReadDir(root.FS(), diskDir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no /%s: want the disk image alone in it, or its path in containerDisk.path", diskDir)
	}
	if err != nil {
		return "", fmt.Errorf("reading /%s: %w", diskDir, err)
	}
	if len(entries) != 1 {
		return "", fmt.Errorf("/%s holds %d files, want the disk image alone, or its path in containerDisk.path", diskDir, len(entries))
	}
	return filepath.Join(diskDir, entries[0].Name()), nil
}

// regular opens a file and makes sure that no part of its path is a link, so that the path that QEMU is given later
// can only be what was looked at: an image volume can't be written to.
func regular(root *os.Root, name string) (*os.File, error) {
	for at := name; at != "."; at = filepath.Dir(at) {
		info, err := root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no /%s: want the path of a file in it", at)
		}
		if err != nil {
			return nil, fmt.Errorf("looking at /%s: %w", at, err)
		}
		if at == name && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("/%s is %s, want a regular file", at, info.Mode().Type())
		}
		if at != name && !info.IsDir() {
			return nil, fmt.Errorf("/%s is %s, want a directory", at, info.Mode().Type())
		}
	}
	return root.Open(name)
}

// Format reads the header of a disk image: qcow2, or raw for all else. A qcow2 that refers to another file is refused:
// its header would decide what QEMU opens.
func Format(r io.ReaderAt) (domain.Format, error) {
	header := make([]byte, qcow2HeaderBytes)
	n, err := r.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the header: %w", err)
	}
	if n == 0 {
		return "", errors.New("the image is empty")
	}
	if n < qcow2HeaderBytes || binary.BigEndian.Uint32(header) != qcow2Magic {
		return domain.Raw, nil
	}
	if binary.BigEndian.Uint64(header[backingOffset:]) != 0 {
		return "", errors.New("a qcow2 image with a backing file: flatten it with qemu-img convert")
	}
	if binary.BigEndian.Uint32(header[cryptOffset:]) != 0 {
		return "", errors.New("an encrypted qcow2 image: decrypt it with qemu-img convert")
	}
	if binary.BigEndian.Uint32(header[versionOffset:]) >= 3 && binary.BigEndian.Uint64(header[featuresOffset:])&externalDataFile != 0 {
		return "", errors.New("a qcow2 image with an external data file: flatten it with qemu-img convert")
	}
	return domain.QCOW2, nil
}

// directIO tells whether a file can be opened past the page cache.
func directIO(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	return unix.Close(fd) == nil
}
