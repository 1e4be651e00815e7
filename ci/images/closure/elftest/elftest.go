// Package elftest writes small ELF files that ask for libraries but hold no code.
package elftest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// File returns a shared object that needs the libraries, looks for them in runpath too, and is started by the
// interpreter; the last two may be empty.
func File(interpreter, runpath string, libraries ...string) []byte {
	names := []byte{0}
	var dynamic []elf.Dyn64
	add := func(tag elf.DynTag, name string) {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(tag), Val: uint64(len(names))})
		names = append(append(names, name...), 0)
	}
	for _, l := range libraries {
		add(elf.DT_NEEDED, l)
	}
	if runpath != "" {
		add(elf.DT_RUNPATH, runpath)
	}
	dynamic = append(dynamic, elf.Dyn64{})

	const headers = 64 + 56 // of the file and of one segment
	interp := append([]byte(interpreter), 0)
	at := func(parts ...int) uint64 {
		sum := headers
		for _, p := range parts {
			sum += p
		}
		return uint64(sum)
	}
	dynamicSize := 16 * len(dynamic)
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: 64,
		Phoff: 64, Phentsize: 56, Shoff: at(len(interp), len(names), dynamicSize), Shentsize: 64, Shnum: 3, Shstrndx: 1,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	if interpreter != "" {
		h.Phnum = 1
	}
	segment := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: at(), Filesz: uint64(len(interp))}
	sections := []elf.Section64{
		{},
		{Type: uint32(elf.SHT_STRTAB), Off: at(len(interp)), Size: uint64(len(names))},
		{Type: uint32(elf.SHT_DYNAMIC), Off: at(len(interp), len(names)), Size: uint64(dynamicSize), Link: 1, Entsize: 16},
	}
	var out bytes.Buffer
	for _, part := range []any{h, segment, interp, names, dynamic, sections} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			panic(err) // fixed-size values into memory
		}
	}
	return out.Bytes()
}
