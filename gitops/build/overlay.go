package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
)

// Overlay is laid over the kustomization that is built, by the rules of a Flux Kustomization. Errors name its parts as
// the fields of a Bundle.
type Overlay struct {
	Namespace, NamePrefix, NameSuffix string
	Patches                           []types.Patch
	Images                            []types.Image
	// Components are directories relative to the one that is built.
	Components              []string
	IgnoreMissingComponents bool
	Variables               Variables
	Bases                   Bases
}

// Variables are what ${name} in the objects stands for.
type Variables struct {
	Values map[string]string
	// Secrets are values that no error may show.
	Secrets []string
	// Always looks for variables even if there is no value, Strict refuses one without value or default.
	Always, Strict bool
}

// lay lays the overlay over the kustomization in dir.
func (w *walk) lay(o Overlay, dir string, k *types.Kustomization) error {
	for i, p := range o.Patches {
		if err := w.checkYAML(fmt.Sprintf("spec.patches[%d]", i), []byte(p.Patch)); err != nil {
			return err
		}
	}
	for i, c := range o.Components {
		_, err := w.local(dir, c)
		if errors.Is(err, errMissing) && o.IgnoreMissingComponents {
			continue
		}
		if err != nil {
			return fmt.Errorf("spec.components[%d]: %w", i, err)
		}
		k.Components = append(k.Components, c)
	}
	k.Namespace = first(o.Namespace, k.Namespace)
	k.NamePrefix = first(o.NamePrefix, k.NamePrefix)
	k.NameSuffix = first(o.NameSuffix, k.NameSuffix)
	k.Patches = append(k.Patches, o.Patches...)
	for _, i := range o.Images {
		k.Images = withImage(k.Images, i)
	}
	return nil
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// withImage adds an image, or changes what the entry of its name has: tag and digest are one.
func withImage(images []types.Image, i types.Image) []types.Image {
	at := slices.IndexFunc(images, func(has types.Image) bool { return has.Name == i.Name })
	if at < 0 {
		return append(images, i)
	}
	has := &images[at]
	has.NewName = first(i.NewName, has.NewName)
	if i.NewTag != "" || i.Digest != "" {
		has.NewTag, has.Digest = i.NewTag, i.Digest
	}
	return images
}

// unset is what is said of a variable that strict mode misses.
var unset = regexp.MustCompile(`variable not set \(strict mode\): "?(\w+)"?`)

// substitute replaces the variables of one object.
func (w *walk) substitute(r *resource.Resource) error {
	if len(w.variables.Values) == 0 && !w.variables.Always {
		return nil
	}
	if err := w.bounded(r); err != nil {
		return err
	}
	values := make(map[string]any, len(w.variables.Values))
	for k, v := range w.variables.Values {
		values[k] = v
	}
	post := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"postBuild": map[string]any{"substitute": values}}}}
	_, err := kustomize.SubstituteVariables(context.Background(), nil, post, r, kustomize.SubstituteWithDryRun(true),
		kustomize.SubstituteWithStrict(w.variables.Strict), kustomize.SubstituteWithAlways(w.variables.Always))
	if err == nil {
		return nil
	}
	if m := unset.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("spec.postBuild: variable %q has no value: name it in substitute or substituteFrom, or write ${%[1]s:=default}", m[1])
	}
	parser := strings.Contains(err.Error(), "YAMLToJSON") || strings.Contains(err.Error(), "UnmarshalJSON")
	if w.quotes(err.Error()) || parser && len(w.variables.Secrets) > 0 {
		return errors.New("spec.postBuild: not YAML any more, with values that may be secret: what has a newline, a quote or a colon in it needs quotes around the ${variable}")
	}
	return fmt.Errorf("spec.postBuild: %w", brief(err))
}

// replaces is how a variable begins whose value each character of may become a whole text.
var replaces = regexp.MustCompile(`\$\{[\pL\pN_]+/`)

// bounded refuses an object that may become too large to hold when values take the place of variables.
func (w *walk) bounded(r *resource.Resource) error {
	data, err := r.AsYAML()
	if err != nil {
		return err
	}
	longest := 0
	for _, v := range w.variables.Values {
		longest = max(longest, len(v))
	}
	times := bytes.Count(data, []byte("${"))
	size := int64(times) * int64(longest)
	if replaces.Match(data) {
		size = int64(len(data)) * int64(longest)
		for n := nesting(data); n > 1 && size <= w.limits.Bytes; n-- { // what takes a character's place may be of variables itself
			size *= int64(max(longest, len(data)))
		}
	}
	if size > w.limits.Bytes {
		return fmt.Errorf("spec.postBuild: %d variables of up to %d bytes may make more than %d bytes", times, longest, w.limits.Bytes)
	}
	return nil
}

// nesting is how many variables at the most are in one another.
func nesting(data []byte) (deepest int) {
	depth := 0
	for i, c := range data {
		switch {
		case c == '{' && i > 0 && data[i-1] == '$':
			depth++
			deepest = max(deepest, depth)
		case c == '}' && depth > 0:
			depth--
		}
	}
	return deepest
}
