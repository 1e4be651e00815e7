// Package render builds the component bundle for one KubeVirt: images, replicas, placement and trust set, grouped by
// the stages of a roll-out.
package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/machine/names"
)

// Images are the references of the two images that the components run.
type Images struct{ Component, Launcher string }

// Settings are what the bundle is rendered with, besides the KubeVirt itself.
type Settings struct {
	Images Images
	// Nodes is how many the cluster has; the number of replicas follows it.
	Nodes int
	// CABundle is what the API server trusts our servers with, PEM.
	CABundle []byte
	// Manifests, of bundles/components as somebody has changed them, are used in the place of the files; nil: the files.
	Manifests []byte
	// Labels are put on every object.
	Labels map[string]string
}

// Bundle is the rendered component bundle. ID is its hash, trust left out: a rotation is no new deployment.
type Bundle struct {
	Objects  []*unstructured.Unstructured
	ID       string
	Registry string
}

// Components renders files, the component bundle, for kv.
func Components(files fs.FS, kv *v1.KubeVirt, s Settings) (Bundle, error) {
	k, err := kustomization(kv, s)
	if err != nil {
		return Bundle{}, err
	}
	memory := filesys.MakeFsInMemory()
	if err := load(memory, files, s.Manifests, k); err != nil {
		return Bundle{}, fmt.Errorf("loading the bundle: %w", err)
	}
	built, err := kustomize.Build(memory, "/")
	if err != nil {
		return Bundle{}, fmt.Errorf("building the bundle: %w", err)
	}
	b := Bundle{Registry: kv.Spec.ImageRegistry}
	for _, r := range built.Resources() {
		data, err := r.MarshalJSON()
		if err != nil {
			return Bundle{}, err
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(data); err != nil {
			return Bundle{}, fmt.Errorf("%s: %w", r.CurId(), err)
		}
		label(u, s.Labels)
		if err := settle(u, kv); err != nil {
			return Bundle{}, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		b.Objects = append(b.Objects, u)
	}
	if b.ID, err = hash(b.Objects); err != nil {
		return Bundle{}, err
	}
	for _, u := range b.Objects {
		if err := trust(u, s.CABundle); err != nil {
			return Bundle{}, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return b, nil
}

func hash(objects []*unstructured.Unstructured) (string, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(objects); err != nil {
		return "", fmt.Errorf("hashing the bundle: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:40], nil
}

func load(to filesys.FileSystem, files fs.FS, manifests []byte, k types.Kustomization) error {
	data, err := yaml.Marshal(k)
	if err != nil {
		return err
	}
	if err := to.WriteFile("/kustomization.yaml", data); err != nil {
		return err
	}
	if manifests != nil {
		fields, err := fs.ReadFile(files, "images.yaml")
		return errors.Join(err, to.WriteFile("/components/images.yaml", fields), to.WriteFile("/components/all.yaml", manifests),
			to.WriteFile("/components/kustomization.yaml", []byte("resources: [all.yaml]\n")))
	}
	return fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, p)
		if err != nil {
			return err
		}
		return to.WriteFile("/components/"+p, data)
	})
}

// kustomization is the overlay that sets what depends on the install.
func kustomization(kv *v1.KubeVirt, s Settings) (types.Kustomization, error) {
	k := types.Kustomization{
		TypeMeta:       types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources:      []string{"components"},
		Configurations: []string{"components/images.yaml"},
		Replicas: []types.Replica{
			{Name: names.API, Count: replicas(kv, s.Nodes, max(2, s.Nodes/10))},
			{Name: names.Controller, Count: replicas(kv, s.Nodes, 2)},
		},
	}
	for _, named := range [][2]string{{"virtstack", s.Images.Component}, {"virt-launcher", s.Images.Launcher}} {
		i, err := image(named[0], named[1], kv.Spec)
		if err != nil {
			return k, err
		}
		k.Images = append(k.Images, i)
	}
	return k, nil
}

// replicas is one on a one-node cluster, else many; the KubeVirt's own number wins.
func replicas(kv *v1.KubeVirt, nodes, many int) int64 {
	switch {
	case kv.Spec.Infra != nil && kv.Spec.Infra.Replicas != nil:
		return int64(*kv.Spec.Infra.Replicas)
	case nodes <= 1:
		return 1
	}
	return int64(many)
}

// image splits a reference; the registry and tag of the KubeVirt win over the operator's own.
func image(name, ref string, spec v1.KubeVirtSpec) (types.Image, error) {
	if ref == "" {
		return types.Image{}, fmt.Errorf("the operator was not told the image of %s", name)
	}
	i := types.Image{Name: name, NewName: ref}
	if repository, digest, ok := strings.Cut(ref, "@"); ok {
		i.NewName, i.Digest = repository, digest
	} else if at := strings.LastIndex(ref, ":"); at > strings.LastIndex(ref, "/") {
		i.NewName, i.NewTag = ref[:at], ref[at+1:]
	}
	if spec.ImageRegistry != "" {
		i.NewName = strings.TrimSuffix(spec.ImageRegistry, "/") + "/" + i.NewName[strings.LastIndex(i.NewName, "/")+1:]
	}
	if spec.ImageTag != "" {
		i.NewTag, i.Digest = spec.ImageTag, ""
	}
	return i, nil
}
