// Package buildid tells builds of one version apart: by what is in the program, so that two builds of the same source are
// the same build, whenever and wherever they were made.
package buildid

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"os"
	"sync"
)

// note is where Go's linker leaves a hash of all that the program was made of.
const note = ".note.go.buildid"

// Own returns twelve hexadecimal digits that stand for this program's content; empty where the program can't be read, as
// on systems whose programs aren't ELF files.
var Own = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return of(path)
})

func of(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	section := f.Section(note)
	if section == nil {
		return ""
	}
	id, err := section.Data()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(id)
	return hex.EncodeToString(sum[:6])
}
