package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	gogit5 "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// ErrNoRepository says that a directory is in no Git repository.
var ErrNoRepository = errors.New("not in a Git repository")

// Local is a repository on this machine. Nothing in it is changed.
type Local struct {
	// Root is the top of the working tree.
	Root string

	repository *gogit5.Repository
}

// OpenLocal opens the repository that a directory is in. The error wraps ErrNoRepository where there is none.
func OpenLocal(dir string) (*Local, error) {
	r, err := gogit5.PlainOpenWithOptions(dir, &gogit5.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, gogit5.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoRepository)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the repository of %s: %w", dir, err)
	}
	w, err := r.Worktree()
	if err != nil {
		return nil, fmt.Errorf("opening the repository of %s: %w", dir, err)
	}
	root, err := filepath.EvalSymlinks(w.Filesystem.Root())
	if err != nil {
		return nil, fmt.Errorf("opening the repository of %s: %w", dir, err)
	}
	return &Local{Root: root, repository: r}, nil
}

// Commit returns the files of a commit, read from the repository as they are asked for, and its hash. The revision is
// what git rev-parse takes: a branch, a tag, a hash, HEAD~1. The error wraps ErrRef where there is no such commit.
func (l *Local) Commit(revision string) (files fs.FS, hash string, err error) {
	at, err := l.repository.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		return nil, "", fmt.Errorf("%q: %w: %w", revision, ErrRef, err)
	}
	c, err := l.repository.CommitObject(*at)
	if err != nil {
		return nil, "", fmt.Errorf("%q: %w: %w", revision, ErrRef, err)
	}
	tree, err := c.Tree()
	if err != nil {
		return nil, "", fmt.Errorf("reading commit %s: %w", at, err)
	}
	return commit{l.repository, tree}, at.String(), nil
}

// commit is the tree of a commit as files. A link is followed inside the tree; one that leads out is not there.
type commit struct {
	repository *gogit5.Repository
	tree       *object.Tree
}
