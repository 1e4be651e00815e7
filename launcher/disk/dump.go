package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/machine/memorydump"
)

// dumpMode lets the guest's user and group at a dump: it holds every secret that the guest had.
const dumpMode = 0o640

// Dump is a new file for a guest's memory. It is written, and then kept or dropped.
type Dump struct {
	root *os.Root
	file *os.File
	name string
}

// Dump makes a file of a name on the claim of a memoryDump volume, on which so many bytes must be free. Others may write
// to the claim as well: nothing that is there is written over, and no link is followed.
func (d Dirs) Dump(volume, name string, bytes uint64) (*Dump, error) {
	if !volumeName.MatchString(volume) || !memorydump.ValidName(name) {
		return nil, fmt.Errorf("volume %q, file %q: not the names of a dump", volume, name)
	}
	root, err := os.OpenRoot(filepath.Join(d.Claims, volume))
	if err != nil {
		return nil, fmt.Errorf("opening the volume: %w", err)
	}
	file, err := dumpIn(root, name, bytes)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dump{root, file, name}, nil
}

func dumpIn(root *os.Root, name string, bytes uint64) (*os.File, error) {
	room, err := free(root)
	if err != nil {
		return nil, err
	}
	if uint64(max(room, 0)) < bytes {
		return nil, fmt.Errorf("no space left on the volume: %d bytes are free, want %d: delete older dumps or use a larger claim", room, bytes)
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, dumpMode)
	if err != nil {
		return nil, fmt.Errorf("making the file: %w", err)
	}
	return f, nil
}

// Write implements io.Writer.
func (d *Dump) Write(p []byte) (int, error) { return d.file.Write(p) }

// Keep ends the writing: what the claim has no room for shows here at the latest.
func (d *Dump) Keep() error {
	err := errors.Join(d.file.Sync(), d.file.Close())
	if err != nil {
		err = errors.Join(err, d.root.Remove(d.name))
	}
	return errors.Join(err, d.root.Close())
}

// Drop ends the writing and takes the file away.
func (d *Dump) Drop() error {
	return errors.Join(d.file.Close(), d.root.Remove(d.name), d.root.Close())
}
