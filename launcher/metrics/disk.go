package metrics

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// Size of the disk in bytes; source: contract of KubeVirt.
const Size = 256 << 10

// pause is how long a disk stays as it is; source: vhostmd's default.
const pause = 5 * time.Second

// Header of the disk, four big-endian words: a signature, whether the content is being changed, the sum of its bytes,
// and its length in bytes; source: vhostmd's include/vhostmd.h.
const (
	signature   = 0x6d766264
	headerBytes = 16
	largest     = Size - headerBytes
)

// encode returns a disk's content up to its last byte that counts. A report that doesn't fit is an error.
func encode(report []byte) ([]byte, error) {
	if len(report) > largest {
		return nil, fmt.Errorf("metrics of %d bytes, at most %d", len(report), largest)
	}
	var sum uint32
	for _, b := range report {
		sum += uint32(b)
	}
	return append(header(0, sum, len(report)), report...), nil
}

func header(busy, sum uint32, length int) []byte {
	h := make([]byte, 0, headerBytes)
	for _, word := range []uint32{signature, busy, sum, uint32(length)} {
		h = binary.BigEndian.AppendUint32(h, word)
	}
	return h
}

// Create makes an empty disk unless it is there.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making the disk of metrics: %w", err)
	}
	_, err = f.Write(header(0, 0, 0))
	return errors.Join(err, f.Truncate(Size), f.Close())
}

// Keep writes the report onto the disk at path, anew every few seconds, until ctx ends: a disk of vhostmd's format, by
// which agents of large applications and vm-dump-metrics know it.
func Keep(ctx context.Context, path string, report func() ([]byte, error)) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if err := put(path, report); err != nil {
			slog.Warn("the guest is told of old metrics", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func put(path string, report func() ([]byte, error)) error {
	body, err := report()
	if err != nil {
		return err
	}
	disk, err := encode(append(body, '\n'))
	if err != nil {
		return err
	}
	return write(path, disk)
}

// write changes a disk while the guest may read it: the header says so until the rest is there.
func write(path string, disk []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("opening the disk of metrics: %w", err)
	}
	busy := bytes.Clone(disk[:headerBytes])
	binary.BigEndian.PutUint32(busy[4:], 1)
	for _, part := range []struct {
		at      int64
		content []byte
	}{{0, busy}, {headerBytes, disk[headerBytes:]}, {0, disk[:headerBytes]}} {
		if _, err := f.WriteAt(part.content, part.at); err != nil {
			return errors.Join(fmt.Errorf("writing the disk of metrics: %w", err), f.Close())
		}
	}
	return f.Close()
}
