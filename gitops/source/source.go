// Package source fetches one revision of a Git repository, an OCI artifact or a source of Flux into a directory of its
// own. The server and what it sends are hostile: what is written is bounded, and a path or link that leads out of the
// tree is refused.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
)

var (
	// ErrRef says that the repository answers but has no such branch, tag, version, commit or digest.
	ErrRef = errors.New("no such ref")
	// ErrRefused says that what the source holds is not accepted: too much, a path or link that leads out.
	ErrRefused = errors.New("the revision is refused")
	// ErrUnverified says that a signature is not there, or by none of the keys. It is an ErrRefused.
	ErrUnverified = fmt.Errorf("%w: its signature is not accepted", ErrRefused)
	// ErrCredentials says that the credentials have not the form that the source needs.
	ErrCredentials = errors.New("the credentials don't fit")
	// ErrCertificates says the same of what a registry's certificate is checked with.
	ErrCertificates = errors.New("the certificates don't fit")
	// ErrKeys says the same of the public keys that signatures are checked with.
	ErrKeys = errors.New("the public keys don't fit")
	// ErrUnchanged says that the ref still leads to the revision that is known.
	ErrUnchanged = errors.New("the revision is known")
)

// Source is where a tree comes from.
type Source interface {
	// Fetch gets the revision. An error wraps ErrRef, ErrRefused, ErrCredentials, ErrCertificates or ErrKeys, or tells why
	// the server can't be reached; it never holds a credential. Once the revision is known, its refusal is a *Refused.
	// ErrUnchanged is returned for the one that is known.
	Fetch(ctx context.Context) (*Checkout, error)
}

// Limits bound what one fetch writes, pack and checkout together.
type Limits struct {
	Bytes int64
	Files int
}

// DefaultLimits are 256 MiB and 50,000 files.
var DefaultLimits = Limits{Bytes: 256 << 20, Files: 50_000}

// Checkout is one revision on disk.
type Checkout struct {
	// Revision is <branch, tag or version>@<algorithm>:<hash>, or without the part before @ where the hash itself was
	// named; of a source of Flux what its artifact says.
	Revision string
	// Files are those of the revision. Opening one that is reached by a link out of them fails.
	Files fs.FS

	dir  string
	root *os.Root
}

// Tree is Files.
func (c *Checkout) Tree() fs.FS { return c.Files }

// Close removes the checkout.
func (c *Checkout) Close() error {
	return errors.Join(c.root.Close(), os.RemoveAll(c.dir))
}

// Refused is the error of a revision that is not accepted: ErrRefused, and which one it is.
type Refused struct {
	// Revision is as in Checkout.
	Revision string
	err      error
}

// Error doesn't say the revision.
func (r *Refused) Error() string { return r.err.Error() }

// Unwrap returns the reason, which wraps ErrRefused.
func (r *Refused) Unwrap() error { return r.err }

// temporary makes the checkout's directory; osfs compares paths with links resolved.
func temporary() (string, error) {
	dir, err := os.MkdirTemp("", "checkout-")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// files is where those of a checkout in dir go.
func files(dir string, left *budget) bounded {
	return bounded{osfs.New(filepath.Join(dir, "tree"), osfs.WithBoundOS()), left}
}

// opened returns the checkout of a directory that is filled.
func opened(dir, revision string) (*Checkout, error) {
	root, err := os.OpenRoot(filepath.Join(dir, "tree"))
	if err != nil {
		return nil, err
	}
	return &Checkout{Revision: revision, Files: root.FS(), dir: dir, root: root}, nil
}

// innermost leaves out what others wrapped around a refusal: go-git says the URL again.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if _, known := err.(*Refused); known || inner == nil || inner == ErrRefused || !errors.Is(inner, ErrRefused) {
			return err
		}
		err = inner
	}
}
