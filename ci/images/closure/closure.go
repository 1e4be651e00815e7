// Package closure finds the shared libraries that programs need, in a tree of extracted packages: what the dynamic
// loader would map, found by reading ELF headers, so that nothing of the tree has to run.
package closure

import (
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"virtstack.io/virtstack/ci/images/rootfs"
)

// libraryDirs is where the dynamic loader of Debian on amd64 looks without being told.
var libraryDirs = []string{"usr/lib/x86_64-linux-gnu", "usr/lib", "usr/lib64"}

// Copy adds files of the extracted tree dir to an image, with every library they need, the links that lead to them and
// the dynamic loader. Names are relative to dir; a file that is missing is an error.
func Copy(to *rootfs.Tree, dir string, names ...string) error {
	c := copier{dir: dir, to: to}
	for _, name := range names {
		if err := c.copy(name); err != nil {
			return fmt.Errorf("copying %s and its libraries: %w", name, err)
		}
	}
	return nil
}

type copier struct {
	dir string
	to  *rootfs.Tree
}

// copy adds one file. A link is added as it is, then what it leads to.
func (c copier) copy(name string) error {
	name, err := c.real(path.Dir(name), path.Base(name))
	if err != nil || c.to.Has(name) {
		return err
	}
	host := filepath.Join(c.dir, filepath.FromSlash(name))
	info, err := os.Lstat(host)
	if err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		target, err := os.Readlink(host)
		if err != nil {
			return err
		}
		c.to.Symlink(name, target)
		return c.copy(beside(name, target))
	}
	c.to.Copy(name, host, info.Mode().Perm())
	return c.libraries(name, host)
}

// real returns the name with all links among its parent directories followed, inside the tree only.
func (c copier) real(dir, base string) (string, error) {
	dir = strings.Trim(path.Clean("/"+dir), "/")
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, part)
		target, err := os.Readlink(filepath.Join(c.dir, at))
		if err != nil {
			continue // not a link; that it is missing is seen later
		}
		if at, err = c.real(path.Dir(beside(at, target)), path.Base(target)); err != nil {
			return "", err
		}
	}
	return path.Join(at, base), nil
}

// beside resolves a link's target against the link's own name.
func beside(link, target string) string {
	if path.IsAbs(target) {
		return strings.TrimPrefix(path.Clean(target), "/")
	}
	return strings.TrimPrefix(path.Join("/", path.Dir(link), target), "/")
}

// libraries adds what the file names as needed, if it is an ELF file.
func (c copier) libraries(name, host string) error {
	needed, err := read(host)
	if err != nil {
		return err
	}
	if needed.interpreter != "" {
		if err := c.copy(needed.interpreter); err != nil {
			return err
		}
	}
	for _, library := range needed.libraries {
		found, err := c.find(library, needed.search(path.Dir(name)))
		if err != nil {
			return err
		}
		if err := c.copy(found); err != nil {
			return err
		}
	}
	return nil
}

func (c copier) find(library string, extra []string) (string, error) {
	for _, dir := range slices.Concat(extra, libraryDirs) {
		name := path.Join(dir, library)
		if _, err := os.Lstat(filepath.Join(c.dir, name)); err == nil {
			return name, nil
		}
	}
	return "", fmt.Errorf("library %s: %w", library, fs.ErrNotExist)
}

// needs is what an ELF file asks of the dynamic loader.
type needs struct {
	interpreter string
	libraries   []string
	runpath     []string
}

// search returns the directories that the file itself names, with $ORIGIN replaced by the one it lies in.
func (n needs) search(origin string) []string {
	var dirs []string
	for _, p := range n.runpath {
		for dir := range strings.SplitSeq(p, ":") {
			dirs = append(dirs, strings.TrimPrefix(strings.ReplaceAll(dir, "$ORIGIN", "/"+origin), "/"))
		}
	}
	return dirs
}

// read returns what the file needs, nothing if it is not an ELF file.
func read(host string) (needs, error) {
	content, err := os.Open(host)
	if err != nil {
		return needs{}, err
	}
	defer content.Close()
	magic := make([]byte, len(elf.ELFMAG))
	if _, err := io.ReadFull(content, magic); err != nil || string(magic) != elf.ELFMAG {
		return needs{}, nil //nolint:nilerr // shorter than a magic number: data, not a program
	}
	f, err := elf.NewFile(content)
	if err != nil {
		return needs{}, err
	}
	var n needs
	if n.libraries, err = f.ImportedLibraries(); err != nil {
		return needs{}, err
	}
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		paths, err := f.DynString(tag)
		if err != nil {
			return needs{}, err
		}
		n.runpath = append(n.runpath, paths...)
	}
	n.interpreter, err = interpreter(f)
	return n, err
}

func interpreter(f *elf.File) (string, error) {
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, p.Filesz)
		if _, err := p.ReadAt(name, 0); err != nil {
			return "", fmt.Errorf("reading the name of the dynamic loader: %w", err)
		}
		return strings.Trim(string(name), "\x00/"), nil
	}
	return "", nil
}
