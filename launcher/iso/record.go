package iso

import "encoding/binary"

// A record's fixed part, and how long a record may be: even, and told in one byte.
const (
	recordBytes = 33
	maxRecord   = 254
)

// isDirectory is the flag of a directory's record.
const isDirectory = 2

// Lengths of system use entries; source: SUSP 1.12 and RRIP 1.12. nmHead is what comes before a name.
const (
	ceBytes = 28
	nmHead  = 5
)

// nmContinues is the flag of a name that goes on in the next NM entry.
const nmContinues = 1

// stamp is the time of every file: the same content gives the same image. 2000-01-01 00:00:00 UTC.
var stamp = []byte{100, 1, 1, 0, 0, 0, 0}

// directory is one directory of one tree.
type directory struct {
	node *node
	tree int
	rest *continuations // nil: nothing is written
}

// size returns its length in bytes, whole sectors.
func (d *directory) size() uint32 {
	return uint32(len((&directory{node: d.node, tree: d.tree, rest: &continuations{}}).bytes()))
}

// bytes are its records; none crosses the end of a sector.
func (d *directory) bytes() []byte {
	var out []byte
	put := func(r []byte) {
		if len(out)%sector+len(r) > sector {
			out = padded(out)
		}
		out = append(out, r...)
	}
	put(d.record("\x00", d.node, d.dotUse()))
	put(d.record("\x01", d.node.parent, d.attributes(d.node.parent)))
	for _, c := range ordered(d.node, d.tree) {
		put(d.record(c.ids[d.tree], c, d.use(c)))
	}
	return padded(out)
}

// record is ECMA-119 9.1.
func (d *directory) record(id string, of *node, use []byte) []byte {
	at, size, flags := of.at, uint32(len(of.content)), byte(0)
	if of.dir {
		at, size, flags = of.trees[d.tree].at, of.trees[d.tree].size, isDirectory
	}
	r := []byte{0, 0}
	r = both32(r, at)
	r = both32(r, size)
	r = append(r, stamp...)
	r = append(r, flags, 0, 0)
	r = both16(r, 1)
	r = append(r, byte(len(id)))
	r = append(r, id...)
	if len(r)%2 == 1 {
		r = append(r, 0)
	}
	r = append(r, use...)
	if len(r)%2 == 1 {
		r = append(r, 0)
	}
	r[0] = byte(len(r))
	return r
}

// dotUse is what the directory says of itself. In the root that is also which extensions are in use.
func (d *directory) dotUse() []byte {
	if d.tree == jolietTree || d.node != d.node.parent {
		return d.attributes(d.node)
	}
	use := append([]byte{'S', 'P', 7, 1, 0xbe, 0xef, 0}, d.attributes(d.node)...)
	return append(use, d.rest.put(extension())...)
}

// extension is the ER entry, by which Linux knows Rock Ridge.
func extension() []byte {
	const id, text, source = "RRIP_1991A", "THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS", "PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE"
	er := []byte{'E', 'R', byte(8 + len(id) + len(text) + len(source)), 1, byte(len(id)), byte(len(text)), byte(len(source)), 1}
	return append(er, id+text+source...)
}

// use is what a child's record says beyond plain ISO 9660: its attributes and its name.
func (d *directory) use(c *node) []byte {
	if d.tree == jolietTree {
		return nil
	}
	use := d.attributes(c)
	fixed := recordBytes + len(c.ids[plainTree])
	room := maxRecord - fixed - fixed%2 - len(use)
	if nmHead+len(c.name) <= room {
		return append(use, nm(c.name, 0)...)
	}
	first := room - ceBytes - nmHead
	use = append(use, nm(c.name[:first], nmContinues)...)
	return append(use, d.rest.put(nm(c.name[first:], 0))...)
}

func nm(name string, flags byte) []byte {
	return append([]byte{'N', 'M', byte(nmHead + len(name)), 1, flags}, name...)
}

// attributes are everybody's to read and nobody's to change.
func (d *directory) attributes(n *node) []byte {
	if d.tree == jolietTree {
		return nil
	}
	mode, links := uint32(0o100444), uint32(1)
	if n.dir {
		mode, links = 0o040555, 2
	}
	px := []byte{'P', 'X', 36, 1}
	for _, v := range []uint32{mode, links, 0, 0} {
		px = both32(px, v)
	}
	return px
}

// continuations is the area for system use entries that don't fit into their records.
type continuations struct {
	at   uint32 // its first sector
	data []byte
}

// put stores an entry, which doesn't cross the end of a sector, and returns the CE entry that leads to it.
func (c *continuations) put(entry []byte) []byte {
	if len(c.data)%sector+len(entry) > sector {
		c.data = padded(c.data)
	}
	start := len(c.data)
	c.data = append(c.data, entry...)
	ce := []byte{'C', 'E', ceBytes, 1}
	for _, v := range []uint32{c.at + uint32(start/sector), uint32(start % sector), uint32(len(entry))} {
		ce = both32(ce, v)
	}
	return ce
}

// both32 is a number in both orders of bytes.
func both32(b []byte, v uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, v), v)
}

func both16(b []byte, v uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, v), v)
}
