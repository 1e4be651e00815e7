package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/domain"
)

// match finds out the block sizes of each volume whose disk is to have them.
func match(vmi *v1.VirtualMachineInstance, sources map[string]domain.Source) error {
	for _, d := range vmi.Spec.Domain.Devices.Disks {
		s, found := sources[d.Name]
		if !found || !domain.MatchesVolume(d.BlockSize) {
			continue
		}
		blocks, err := blocksOf(s)
		if err != nil {
			return fmt.Errorf("finding out the block sizes of volume %q: %w", d.Name, err)
		}
		s.Blocks = blocks
		sources[d.Name] = s
	}
	return nil
}

// blocksOf asks a device, or the file system that a file is on.
func blocksOf(s domain.Source) (domain.Blocks, error) {
	f, err := os.OpenFile(s.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return domain.Blocks{}, err
	}
	defer f.Close()
	fd := int(f.Fd())
	if !s.Block {
		var fs unix.Statfs_t
		err := unix.Fstatfs(fd, &fs)
		size := uint(fs.Bsize)
		return domain.Blocks{Logical: size, Physical: size, Discard: size}, err
	}
	logical, err1 := unix.IoctlGetInt(fd, unix.BLKSSZGET)
	physical, err2 := unix.IoctlGetInt(fd, unix.BLKPBSZGET)
	discard, err3 := granularity(fd)
	return domain.Blocks{Logical: uint(logical), Physical: uint(physical), Discard: discard}, errors.Join(err1, err2, err3)
}

// granularity is how many bytes a device discards at once; 0 where it doesn't say, as a partition.
func granularity(fd int) (uint, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	raw, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/queue/discard_granularity", unix.Major(st.Rdev), unix.Minor(st.Rdev)))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 32)
	return uint(n), err
}
