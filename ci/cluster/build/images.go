package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"virtstack.io/virtstack/ci/cluster/image"
	"virtstack.io/virtstack/ci/cluster/layout"
)

// images writes the archives that the cluster itself needs; every node imports them.
func images(d layout.Dir) error {
	busybox, err := busyboxImage("/bin/busybox")
	if err != nil {
		return err
	}
	all := map[string]image.Image{
		"busybox":                busybox,
		"pause":                  single(d, "pause"),
		"coredns":                single(d, "coredns"),
		"local-path-provisioner": single(d, "local-path-provisioner"),
	}
	for name, i := range all {
		if err := i.Write(filepath.Join(d.Images(), name+".tar")); err != nil {
			return err
		}
	}
	return nil
}

// single is an image of one static program.
func single(d layout.Dir, name string) image.Image {
	return image.Image{
		Name: "localhost/" + name + ":1", Entrypoint: []string{"/" + name},
		Entries: []image.Entry{{Path: name, Mode: 0o755, From: d.Program(name)}},
	}
}

// busyboxImage is Debian's static busybox with a link for each of its programs: the shell of storage's helper Pods
// and of tests.
func busyboxImage(program string) (image.Image, error) {
	raw, err := exec.Command(program, "--list").Output()
	if err != nil {
		return image.Image{}, fmt.Errorf("listing busybox's programs: %w", err)
	}
	i := image.Image{Name: "localhost/busybox:1", Entrypoint: []string{"/bin/sh"}, Entries: []image.Entry{
		{Path: "bin", Mode: os.ModeDir | 0o755},
		{Path: "bin/busybox", Mode: 0o755, From: program},
		{Path: "etc", Mode: os.ModeDir | 0o755},
		{Path: "etc/passwd", Mode: 0o644, Text: "root:x:0:0::/root:/bin/sh\nqemu:x:107:107::/:/bin/sh\n"},
		{Path: "etc/group", Mode: 0o644, Text: "root:x:0:\nqemu:x:107:\n"},
		{Path: "root", Mode: os.ModeDir | 0o700},
		{Path: "tmp", Mode: os.ModeDir | os.ModeSticky | 0o777},
		{Path: "var", Mode: os.ModeDir | 0o755},
		{Path: "var/www", Mode: os.ModeDir | 0o755},
	}}
	for _, name := range strings.Fields(string(raw)) {
		if name != "busybox" {
			i.Entries = append(i.Entries, image.Entry{Path: "bin/" + name, Link: "busybox"})
		}
	}
	return i, nil
}
