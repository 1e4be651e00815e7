package rootfs

import (
	"fmt"
	"io"
	"io/fs"
)

// File types of a cpio header, as in stat(2).
const (
	cpioDir     = 0o040000
	cpioFile    = 0o100000
	cpioSymlink = 0o120000
)

// CPIO writes the tree in the "newc" form that Linux takes as its initramfs. Inode numbers count up, times are zero.
func (t *Tree) CPIO(w io.Writer) error {
	for i, e := range t.Entries() {
		if err := e.cpio(w, i+1); err != nil {
			return fmt.Errorf("writing %s to an initramfs: %w", e.Path, err)
		}
	}
	return cpioRecord(w, cpioHeader{name: "TRAILER!!!", links: 1}, nil)
}

func (e Entry) cpio(w io.Writer, inode int) error {
	h := cpioHeader{name: e.Path, inode: inode, mode: int(e.Mode.Perm()), owner: e.Owner, links: 1}
	if e.Mode&fs.ModeSticky != 0 {
		h.mode |= 0o1000
	}
	switch e.Mode.Type() {
	case fs.ModeDir:
		h.mode, h.links = h.mode|cpioDir, 2
		return cpioRecord(w, h, nil)
	case fs.ModeSymlink:
		h.mode |= cpioSymlink
		return cpioRecord(w, h, []byte(e.Link))
	}
	content, _, err := e.open()
	if err != nil {
		return err
	}
	defer content.Close()
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	h.mode |= cpioFile
	return cpioRecord(w, h, data)
}

type cpioHeader struct {
	name  string
	inode int
	mode  int
	owner Owner
	links int
}

// cpioRecord writes one record: a header of hexadecimal fields, the name and the data, each padded to four bytes.
func cpioRecord(w io.Writer, h cpioHeader, data []byte) error {
	const headerSize = 110
	_, err := fmt.Fprintf(w, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00%s%s%s",
		h.inode, h.mode, h.owner.UID, h.owner.GID, h.links, 0, len(data), 0, 0, 0, 0, len(h.name)+1, 0,
		h.name, padding(headerSize+len(h.name)+1), data, padding(len(data)))
	return err
}

func padding(size int) string { return "\x00\x00\x00"[:(4-size%4)%4] }
