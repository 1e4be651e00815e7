package build

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// Bases lets kustomizations have bases and components in other repositories. The zero value lets them have none.
type Bases struct {
	// Allowed are URLs of repositories, or of what they lie beneath; see CheckBase.
	Allowed []string
	// Fetch gets a commit of the repository at a URL.
	Fetch func(url, commit string) (Base, error)
}

// Base is a commit of another repository.
type Base interface {
	// Tree is its files.
	Tree() fs.FS
	// Close is called after the build.
	Close() error
}

const (
	// mostBases is how many commits of other repositories one build may use: each is a fetch.
	mostBases = 8
	// beneath is the directory that they appear in. Hidden directories are not looked at for manifests.
	beneath = ".bases"
	// wholeRepository is what kustomize's parser says of a base that names no directory.
	wholeRepository = "notCloned"
)

// pinned is a whole SHA-1.
var pinned = regexp.MustCompile(`^[0-9a-f]{40}$`)

// CheckBase tells whether an entry of Bases.Allowed is one: the http or https URL of a repository, or of a host or path
// that repositories lie beneath, without credentials, query or fragment.
func CheckBase(allowed string) error {
	u, err := url.Parse(allowed)
	if err != nil {
		return fmt.Errorf("%q is no URL: %w", allowed, err)
	}
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	straight := path.Clean("/"+u.Path) == "/"+strings.Trim(u.Path, "/")
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || plain.String() != allowed || !straight {
		return fmt.Errorf("%q must be https://host or https://host/path (or http), without credentials, query or .. in the path", allowed)
	}
	return nil
}

// covers tells whether a repository is the allowed one, or beneath it.
func covers(allowed string, repository *url.URL) bool {
	a, err := url.Parse(allowed)
	if err != nil || a.Scheme != repository.Scheme || a.Host != repository.Host {
		return false
	}
	return strings.HasPrefix(segments(repository), segments(a))
}

// segments is a path with a slash behind each of its parts; the .git that servers take or leave is left.
func segments(u *url.URL) string {
	return strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git") + "/"
}

// mounted is files with the bases among them.
type mounted struct {
	fs.FS
	at map[string]Base
}

// Open is that of fs.FS.
func (m mounted) Open(name string) (fs.File, error) {
	for at, b := range m.at {
		if name == at {
			return b.Tree().Open(".")
		}
		if within, ok := strings.CutPrefix(name, at+"/"); ok {
			return b.Tree().Open(within)
		}
	}
	return m.FS.Open(name)
}

// closed ends what was fetched.
func (m mounted) closed() error {
	var all []error
	for _, b := range m.at {
		all = append(all, b.Close())
	}
	return errors.Join(all...)
}

// of is the base that a path is in, as the path of its root; "" is the commit that is built.
func (m mounted) of(p string) string {
	for at := range m.at {
		if p == at || strings.HasPrefix(p, at+"/") {
			return at
		}
	}
	return ""
}

// localize fetches the remote bases of the kustomization in a file, and makes its entries paths to them.
func (w *walk) localize(file, dir string, k *types.Kustomization) error {
	if len(w.bases.Allowed) == 0 || !slices.ContainsFunc(slices.Concat(k.Resources, k.Components), isRemote) {
		return nil
	}
	for _, list := range []*[]string{&k.Resources, &k.Components} {
		*list = slices.Clone(*list)
		for i, entry := range *list {
			if !isRemote(entry) {
				continue
			}
			at, err := w.base(entry)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if (*list)[i], err = filepath.Rel("/"+dir, "/"+at); err != nil {
				return fmt.Errorf("%s: %q: %w", file, entry, err)
			}
		}
	}
	data, err := yaml.Marshal(k)
	if err != nil {
		return err
	}
	if w.over[file] = data; file == w.file {
		w.root = *k
	}
	return nil
}

// base returns the path at which a remote base appears, having fetched it.
func (w *walk) base(entry string) (string, error) {
	o := (&resource.Origin{}).Append(entry)
	u, err := url.Parse(o.Repo)
	if err != nil || u.User != nil || u.RawPath != "" || path.Clean(u.Path) != u.Path {
		return "", remote(entry)
	}
	if !slices.ContainsFunc(w.bases.Allowed, func(allowed string) bool { return covers(allowed, u) }) {
		return "", remote(entry)
	}
	if !pinned.MatchString(o.Ref) {
		return "", fmt.Errorf("%q: ref is %q, want a whole commit (?ref= and its 40 hexadecimal digits): a branch or tag moves", entry, o.Ref)
	}
	if w.Exists(beneath) {
		return "", fmt.Errorf("%q: the repository has a file or directory %s, where bases of others appear: it must have another name", entry, beneath)
	}
	at := path.Join(beneath, o.Ref, u.Host+u.Path)
	if w.mounts.at[at] == nil {
		if len(w.mounts.at) == mostBases {
			return "", fmt.Errorf("%q: more than %d commits of other repositories are used", entry, mostBases)
		}
		b, err := w.bases.Fetch(o.Repo, o.Ref)
		if err != nil {
			return "", fmt.Errorf("%q: %w", entry, &unfetched{err})
		}
		w.mounts.at[at] = b
	}
	dir := path.Clean("/" + o.Path)[1:]
	if dir == wholeRepository {
		dir = ""
	}
	p := path.Join(at, dir)
	if !w.IsDir(p) {
		return "", fmt.Errorf("%q: the commit has no directory %q", entry, o.Path)
	}
	return p, nil
}

// unfetched is the error of a base that could not be had: a further try may get it.
type unfetched struct{ error }

// Unwrap returns the reason.
func (u *unfetched) Unwrap() error { return u.error }

func remote(entry string) error {
	return fmt.Errorf("%q is remote, and none of what --allow-remote-bases names: only files of the same commit can be used", entry)
}
