package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Loop is a block device over a file in the cluster's state directory, by which "cluster down" knows that it has to go.
type Loop struct{ Device, file string }

// Loop attaches a new file of so many bytes. Detach it when nobody has it open.
func (l *Lab) Loop(name string, bytes int64) (*Loop, error) {
	run, err := filepath.EvalSymlinks(filepath.Join(l.State(), "run"))
	if err != nil {
		return nil, fmt.Errorf("looking for the cluster's state: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(run, name), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(bytes); err != nil {
		return nil, err
	}
	device, err := attach(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attaching %s to a loop device: %w", name, err), os.Remove(f.Name()))
	}
	return &Loop{device, f.Name()}, nil
}

func attach(f *os.File) (string, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer control.Close()
	n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return "", err
	}
	device := fmt.Sprintf("/dev/loop%d", n)
	d, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer d.Close()
	return device, unix.IoctlSetInt(int(d.Fd()), unix.LOOP_SET_FD, int(f.Fd()))
}

// Detach frees the device and removes its file.
func (d *Loop) Detach() error {
	f, err := os.OpenFile(d.Device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0), os.Remove(d.file))
}
