// Package debian fetches Debian packages and extracts them, beside and without touching the machine's own packages. It
// drives apt with state, lists and cache of its own; the archive is the one that the machine itself is set up with.
package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Suite is the release that the launcher and the test guest are made of: Debian 13.
const Suite = "trixie"

// Set says which packages are wanted.
type Set struct {
	Closure []string // with everything they depend on
	Alone   []string // themselves only
	// Newest are packages without content that depend on the newest version of another one, which is taken alone, as
	// linux-image-cloud-amd64 does.
	Newest []string
}

// Union returns what is in any of the sets.
func Union(sets ...Set) Set {
	var all Set
	for _, s := range sets {
		all.Closure = union(all.Closure, s.Closure)
		all.Alone = union(all.Alone, s.Alone)
		all.Newest = union(all.Newest, s.Newest)
	}
	return all
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Package is one extracted package.
type Package struct{ Name, Version, Control string }

// Extracted is a tree of packages that were unpacked but not configured.
type Extracted struct {
	Dir      string
	Packages []Package
	Key      string // digest of the names and versions: equal keys mean equal trees
}

// Fetch returns the set's packages, extracted beneath cache. A tree that is there already is used as it is; removing
// the cache is how newer packages are got. Progress is told on log.
func Fetch(ctx context.Context, cache string, set Set, log io.Writer) (Extracted, error) {
	home, err := filepath.Abs(filepath.Join(cache, "debian-"+digest(fmt.Sprint(Suite, set))[:12]))
	if err != nil {
		return Extracted{}, err
	}
	tree := filepath.Join(home, "tree")
	packages, err := readPackages(home)
	if os.IsNotExist(err) {
		packages, err = fetch(ctx, home, set, log)
	}
	if err != nil {
		return Extracted{}, fmt.Errorf("fetching Debian packages: %w", err)
	}
	var key strings.Builder
	for _, p := range packages {
		fmt.Fprintln(&key, p.Name, p.Version)
	}
	return Extracted{tree, packages, digest(key.String())}, nil
}

func fetch(ctx context.Context, home string, set Set, log io.Writer) ([]Package, error) {
	if err := os.RemoveAll(home); err != nil { // of a run that was interrupted
		return nil, err
	}
	a, err := newApt(home, log)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "fetching packages of Debian %s\n", Suite)
	files, err := a.download(ctx, set)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "extracting %d packages\n", len(files))
	if err := extract(ctx, filepath.Join(home, "tree"), files); err != nil {
		return nil, err
	}
	packages, err := describe(ctx, files)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(a.home); err != nil { // lists and archives are not needed again
		return nil, err
	}
	return packages, writePackages(home, packages)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
