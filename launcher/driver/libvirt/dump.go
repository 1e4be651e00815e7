package libvirt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	libvirtgo "libvirt.org/go/libvirt"
)

// chunk is how much of a dump is written at a time, in bytes.
const chunk = 1 << 20

// Dump implements driver.Driver. Neither libvirt nor QEMU can end a dump of memory before its time, and both would write
// to whatever a path leads to: so they are given a pipe, and when nobody reads from it any more, they end it.
func (d *Driver) Dump(ctx context.Context, w io.Writer) error {
	const doing = "dumping the guest's memory"
	dom, err := d.must()
	if err != nil {
		return d.failed(doing, err)
	}
	defer free(dom)
	dir, err := os.MkdirTemp(d.dir, "dump")
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer os.RemoveAll(dir)
	pipe := filepath.Join(dir, "memory")
	r, hold, err := open(pipe)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	poured := make(chan error, 1)
	go func() { poured <- pour(ctx, w, r) }()
	dumped := dom.CoreDumpWithFormat(pipe, libvirtgo.DOMAIN_CORE_DUMP_FORMAT_RAW, libvirtgo.DUMP_MEMORY_ONLY)
	closed := hold.Close() // now the reader sees the end
	if err := errors.Join(<-poured, closed); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return d.failed(doing, dumped)
}

// open makes a pipe and opens its reading end, and a writing end that keeps it open before and after QEMU does.
func open(path string) (r, hold *os.File, err error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, nil, fmt.Errorf("making a pipe: %w", err)
	}
	if r, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil { // else it waits for a writer
		return nil, nil, err
	}
	if hold, err = os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r, hold, nil
}

// pour copies what comes from a pipe until its end, and closes it. It stays open until the first byte has come: who opens
// a pipe to write waits for a reader, and nothing would end that wait.
func pour(ctx context.Context, w io.Writer, r *os.File) error {
	defer r.Close()
	first := make([]byte, 1)
	if _, err := io.ReadFull(r, first); err != nil {
		return nil // nothing came: libvirt says why
	}
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) }) // pipes take deadlines
	defer stop()
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{io.MultiReader(bytes.NewReader(first), r)}, make([]byte, chunk))
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
