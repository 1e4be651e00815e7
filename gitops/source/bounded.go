package source

import (
	"fmt"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
)

// budget is what one fetch may still write.
type budget struct {
	mu     sync.Mutex
	limits Limits
	bytes  int64
	files  int
}

func (b *budget) write(n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes += int64(n); b.bytes > b.limits.Bytes {
		return fmt.Errorf("%w: it has more than %d bytes", ErrRefused, b.limits.Bytes)
	}
	return nil
}

func (b *budget) create() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.files++; b.files > b.limits.Files {
		return fmt.Errorf("%w: it has more than %d files", ErrRefused, b.limits.Files)
	}
	return nil
}

// bounded is a directory that go-git writes to, within a budget. The one beneath keeps every path inside.
type bounded struct {
	billy.Filesystem
	left *budget
}

// Create counts the file.
func (b bounded) Create(name string) (billy.File, error) {
	return b.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// OpenFile counts a file that it creates, and what is written to it.
func (b bounded) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	if flag&os.O_CREATE != 0 {
		if err := b.left.create(); err != nil {
			return nil, err
		}
	}
	f, err := b.Filesystem.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return boundedFile{f, b.left}, nil
}

// TempFile counts the file.
func (b bounded) TempFile(dir, prefix string) (billy.File, error) {
	if err := b.left.create(); err != nil {
		return nil, err
	}
	f, err := b.Filesystem.TempFile(dir, prefix)
	if err != nil {
		return nil, err
	}
	return boundedFile{f, b.left}, nil
}

// Symlink refuses a link that leads out of the checkout, whether its target exists or not.
func (b bounded) Symlink(target, link string) error {
	to := path.Join(path.Dir(link), target)
	if path.IsAbs(target) || to == ".." || strings.HasPrefix(to, "../") {
		return fmt.Errorf("%w: %s is a link that leads out of the repository", ErrRefused, link)
	}
	if err := b.left.create(); err != nil {
		return err
	}
	return b.Filesystem.Symlink(target, link)
}

// Chroot keeps the budget.
func (b bounded) Chroot(dir string) (billy.Filesystem, error) {
	fs, err := b.Filesystem.Chroot(dir)
	return bounded{fs, b.left}, err
}

type boundedFile struct {
	billy.File
	left *budget
}

func (f boundedFile) Write(p []byte) (int, error) {
	if err := f.left.write(len(p)); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}
