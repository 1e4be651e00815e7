// Package component builds the one image that all our control plane processes and the node agent run from: static
// binaries, certificates of the public authorities, two accounts, no shell.
package component

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"virtstack.io/virtstack/ci/images/debian"
	"virtstack.io/virtstack/ci/images/oci"
	"virtstack.io/virtstack/ci/images/rootfs"
)

// Packages is where the certificates come from.
var Packages = debian.Set{Alone: []string{"ca-certificates"}}

// Binaries are the programs in the image, in the order of their layers: the ones that change most often come last.
var Binaries = []string{"virt-operator", "virt-api", "virt-controller", "virt-handler"}

// user is what the processes run as, but for virt-handler, whose Pod says root.
const user = "65532:65532"

// Spec returns the image; dir holds the binaries. Each has its own layer, so that a change of one leaves the others.
func Spec(packages debian.Extracted, dir string) (oci.Spec, error) {
	base, err := base(packages)
	if err != nil {
		return oci.Spec{}, err
	}
	spec := oci.Spec{User: user, Layers: []oci.Layer{{Name: "accounts and certificates", Tree: base}}}
	for _, name := range Binaries {
		tree := rootfs.New()
		tree.Copy("usr/bin/"+name, filepath.Join(dir, name), 0o755)
		spec.Layers = append(spec.Layers, oci.Layer{Name: name, Tree: tree})
	}
	return spec, nil
}

func base(packages debian.Extracted) (*rootfs.Tree, error) {
	certificates, err := authorities(packages.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates of public authorities: %w", err)
	}
	tree := rootfs.New()
	for _, dir := range []string{"proc", "sys", "dev", "run", "home/nonroot"} {
		tree.Dir(dir, 0o755, rootfs.Root)
	}
	tree.Dir("tmp", 0o777|fs.ModeSticky, rootfs.Root)
	tree.File("etc/passwd", []byte("root:x:0:0:root:/:/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/nologin\n"), 0o644)
	tree.File("etc/group", []byte("root:x:0:\nnonroot:x:65532:\n"), 0o644)
	tree.File("etc/ssl/certs/ca-certificates.crt", certificates, 0o644)
	return tree, nil
}

// authorities puts the package's certificates into the one file that Go's TLS reads.
func authorities(dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "usr/share/ca-certificates/mozilla/*.crt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("found %d files beneath %s: %w", len(files), dir, fs.ErrNotExist)
	}
	var all bytes.Buffer
	for _, file := range files { // Glob sorts
		certificate, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all.Write(append(bytes.TrimSpace(certificate), '\n'))
	}
	return all.Bytes(), nil
}
