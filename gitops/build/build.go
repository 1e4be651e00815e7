// Package build turns one directory of a commit into the objects it describes. What it reads is hostile: nothing
// outside the files it is given is reached, nothing is fetched or executed, and everything is bounded.
package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
)

// ErrRefused is wrapped by every error that is the commit's fault: building it again gives the same answer.
var ErrRefused = errors.New("the commit can't be built")

// Limits bound one build.
type Limits struct {
	Bytes   int64 // of all files read, together
	Files   int   // read
	Nodes   int   // of one YAML file, aliases expanded
	Depth   int   // of nesting in a YAML file, and of bases beneath each other
	Objects int   // built
}

// DefaultLimits are far above what people keep in one directory: 32 MiB, 5,000 files, 5,000 objects.
var DefaultLimits = Limits{Bytes: 32 << 20, Files: 5000, Nodes: 1 << 20, Depth: 100, Objects: 5000}

// Object is one built object and the file that it comes from, relative to the root; File is empty for what a
// generator made.
type Object struct {
	*unstructured.Unstructured
	File string
}

// String names the object as errors and conditions do: Kind namespace/name (file).
func (o Object) String() string {
	s := o.GetKind() + " "
	if o.GetNamespace() != "" {
		s += o.GetNamespace() + "/"
	}
	s += o.GetName()
	if o.File != "" {
		s += " (" + o.File + ")"
	}
	return s
}

// Objects builds the kustomization in dir, a slash-separated path beneath the root of files; "" is the root. Without a
// kustomization file there, one that lists every manifest beneath dir is assumed. Errors name the file, and the object
// where there is one.
func Objects(ctx context.Context, files fs.FS, dir string, limits Limits) ([]Object, error) {
	return Overlaid(ctx, files, dir, limits, Overlay{})
}

// Overlaid is Objects with an overlay. It waits for other builds of the process no longer than ctx lets it.
func Overlaid(ctx context.Context, files fs.FS, dir string, limits Limits, over Overlay) (all []Object, err error) {
	mounts := mounted{files, map[string]Base{}}
	defer func() { err = errors.Join(err, mounts.closed()) }()
	t := newTree(mounts, limits)
	dir = path.Clean("/" + dir)[1:]
	if isRemote("/" + dir) {
		return nil, fmt.Errorf("%w: path %q has the form of a remote repository", ErrRefused, dir)
	}
	if !t.IsDir("/" + dir) {
		return nil, fmt.Errorf("%w: %s is not a directory of the commit", ErrRefused, shown(dir))
	}
	w := walk{tree: t, seen: map[string]bool{}, places: map[string][]place{}, shared: map[string]bool{}, count: map[string]int{}, variables: over.Variables, bases: over.Bases, mounts: mounts}
	w.secrets = append(w.secrets, over.Variables.Secrets...)
	if err := w.start(dir, over); errors.As(err, new(*unfetched)) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	leave, err := enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if all, ok := w.inParts(dir); ok {
		return all, nil
	}
	built, err := t.run(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: building %s: %w", ErrRefused, shown(dir), w.explain(err))
	}
	if built.Size() > limits.Objects {
		return nil, fmt.Errorf("%w: %s builds to %d objects, at most %d are allowed", ErrRefused, shown(dir), built.Size(), limits.Objects)
	}
	return w.objects(built, dir)
}

func (w *walk) objects(built resmap.ResMap, dir string) ([]Object, error) {
	files := make([]string, 0, built.Size())
	for _, r := range built.Resources() {
		files = append(files, origin(r, dir))
	}
	if !w.keepOrigins {
		if err := built.RemoveOriginAnnotations(); err != nil {
			return nil, fmt.Errorf("removing origins: %w", err)
		}
	}
	var all []Object
	for i, r := range built.Resources() {
		if err := w.substitute(r); err != nil {
			return nil, fmt.Errorf("%w: %s %s (%s): %w", ErrRefused, r.GetKind(), r.GetName(), first(files[i], "generated"), err)
		}
		data, err := r.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRefused, r.CurId(), err)
		}
		o := Object{Unstructured: &unstructured.Unstructured{}, File: files[i]}
		if err := o.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRefused, r.CurId(), err)
		}
		if err := complete(o); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRefused, o, err)
		}
		all = append(all, o)
	}
	return all, nil
}

func origin(r *resource.Resource, dir string) string {
	o, err := r.GetOrigin()
	if err != nil || o == nil || o.Path == "" {
		return ""
	}
	return path.Join(dir, real(o.Path))
}

func complete(o Object) error {
	switch {
	case o.GetAPIVersion() == "":
		return errors.New("apiVersion is missing")
	case o.GetKind() == "":
		return errors.New("kind is missing")
	case o.GetName() == "":
		return errors.New("metadata.name is missing")
	}
	return nil
}

// brief cuts what kustomize adds when it has tried each meaning of an entry in turn.
func brief(err error) error {
	const most = 600
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > most {
		s = s[:most] + "…"
	}
	return errors.New(s)
}

func shown(dir string) string {
	if dir == "" {
		return "the root"
	}
	return dir
}
