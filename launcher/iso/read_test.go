package iso_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

const sector = 2048

// reader reads an image as ECMA-119, SUSP, RRIP and Joliet say, knowing nothing of the writer.
type reader struct{ image []byte }

// tree returns the files of the tree that the descriptor in a sector leads to, by path.
func (r reader) tree(descriptor int, joliet bool) (files map[string]string, err error) {
	defer func() {
		if p := recover(); p != nil { // a broken image leads out of it
			err = fmt.Errorf("broken image: %v", p)
		}
	}()
	d := r.image[descriptor*sector:]
	if string(d[1:6]) != "CD001" {
		return nil, fmt.Errorf("sector %d is no descriptor", descriptor)
	}
	if total := binary.LittleEndian.Uint32(d[80:]); int(total)*sector != len(r.image) {
		return nil, fmt.Errorf("the image says %d sectors and has %d bytes", total, len(r.image))
	}
	files = map[string]string{}
	r.dir(files, "", d[156:], joliet)
	return files, nil
}

func (r reader) extent(record []byte) []byte {
	at, size := binary.LittleEndian.Uint32(record[2:]), binary.LittleEndian.Uint32(record[10:])
	if binary.BigEndian.Uint32(record[6:]) != at || binary.BigEndian.Uint32(record[14:]) != size {
		panic("the two orders of bytes disagree")
	}
	return r.image[int(at)*sector:][:size]
}

func (r reader) dir(files map[string]string, path string, record []byte, joliet bool) {
	data := r.extent(record)
	before := ""
	for at := 0; at < len(data); {
		n := int(data[at])
		if n == 0 {
			at = (at/sector + 1) * sector
			continue
		}
		if at/sector != (at+n-1)/sector || n%2 == 1 {
			panic("a record crosses sectors or is odd")
		}
		r.entry(files, path, data[at:at+n], joliet)
		id := string(data[at+33:][:data[at+32]])
		if at > 68 && id <= before { // behind the directory itself and its parent
			panic(fmt.Sprintf("%q comes after %q", id, before))
		}
		if len(id) > 1 {
			before = id
		}
		at += n
	}
}

func (r reader) entry(files map[string]string, path string, record []byte, joliet bool) {
	id := record[33:][:record[32]]
	if len(id) == 1 && id[0] <= 1 {
		return
	}
	name := utf16s(id)
	if !joliet {
		name = r.name(record[33+len(id)+(len(id)+1)%2:])
	}
	if record[25]&2 != 0 {
		r.dir(files, path+name+"/", record, joliet)
		return
	}
	files[path+name] = string(r.extent(record))
}

// name reads NM entries and follows CE.
func (r reader) name(use []byte) string {
	var name strings.Builder
	for len(use) >= 4 {
		entry := use[:use[2]]
		use = use[use[2]:]
		switch string(entry[:2]) {
		case "NM":
			name.Write(entry[5:])
		case "CE":
			at, offset, size := binary.LittleEndian.Uint32(entry[4:]), binary.LittleEndian.Uint32(entry[12:]), binary.LittleEndian.Uint32(entry[20:])
			if offset+size > sector {
				panic("a continuation crosses sectors")
			}
			use = r.image[int(at)*sector+int(offset):][:size]
		}
	}
	return name.String()
}

func utf16s(b []byte) string {
	var u []uint16
	for i := 0; i+1 < len(b); i += 2 {
		u = append(u, binary.BigEndian.Uint16(b[i:]))
	}
	return string(utf16.Decode(u))
}
