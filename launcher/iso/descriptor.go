package iso

import (
	"bytes"
	"encoding/binary"
)

// Kinds of volume descriptors; source: ECMA-119 8.1.
const (
	primaryKind       = 1
	supplementaryKind = 2
	terminatorKind    = 255
)

// Where fields of a volume descriptor start; source: ECMA-119 8.4 and 8.5.
const (
	labelAt      = 40
	totalAt      = 80
	escapesAt    = 88
	setAt        = 120
	tableSizeAt  = 132
	tablesAt     = 140
	rootAt       = 156
	textsAt      = 190
	textsEnd     = 813
	timesAt      = 813
	structureAt  = 881
	labelBytes   = 32
	timeBytes    = 17
	times        = 4
	bigTableSkip = 8
)

// jolietEscape says UCS-2 level 3.
const jolietEscape = "%/E"

func (l *layout) primary(label string) []byte {
	d := l.descriptor(primaryKind, plainTree)
	blank(d, []byte(" "))
	copy(d[labelAt:labelAt+labelBytes], label)
	return d
}

func (l *layout) joliet(label string) []byte {
	d := l.descriptor(supplementaryKind, jolietTree)
	blank(d, []byte("\x00 "))
	text := ucs2(joliet(label, map[string]bool{}))
	copy(d[labelAt:labelAt+labelBytes], text[:min(len(text), labelBytes)])
	copy(d[escapesAt:], jolietEscape)
	return d
}

func (l *layout) descriptor(kind byte, tree int) []byte {
	d := head(kind)
	copy(d[totalAt:], both32(nil, l.total))
	copy(d[setAt:], both16(both16(both16(nil, 1), 1), sector))
	copy(d[tableSizeAt:], both32(nil, l.table[tree].size))
	binary.LittleEndian.PutUint32(d[tablesAt:], l.table[tree].at[0])
	binary.BigEndian.PutUint32(d[tablesAt+bigTableSkip:], l.table[tree].at[1])
	copy(d[rootAt:], (&directory{tree: tree}).record("\x00", l.root, nil))
	for i := range times {
		at := d[timesAt+i*timeBytes:]
		copy(at, bytes.Repeat([]byte("0"), timeBytes-1)) // not given
		at[timeBytes-1] = 0
	}
	d[structureAt] = 1
	return d
}

// blank fills the descriptor's texts with blanks of its character set.
func blank(d, with []byte) {
	for _, field := range [][]byte{d[8:labelAt], d[labelAt : labelAt+labelBytes], d[textsAt:textsEnd]} {
		for i := range field {
			field[i] = with[i%len(with)]
		}
	}
}

func terminator() []byte { return head(terminatorKind) }

func head(kind byte) []byte {
	d := make([]byte, sector)
	d[0], d[6] = kind, 1
	copy(d[1:], "CD001")
	return d
}
