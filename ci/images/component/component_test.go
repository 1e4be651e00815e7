package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"virtstack.io/virtstack/ci/images/debian"
)

func TestSpecHasALayerForEachBinaryOverTheCertificates(t *testing.T) {
	dir := t.TempDir()
	certificates := filepath.Join(dir, "usr/share/ca-certificates/mozilla")
	if err := os.MkdirAll(certificates, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"B.crt", "A.crt"} {
		if err := os.WriteFile(filepath.Join(certificates, name), []byte(name+"\n\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := Spec(debian.Extracted{Dir: dir}, "bin")
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Layers) != 1+len(Binaries) || spec.User != "65532:65532" {
		t.Errorf("got %d layers, user %s", len(spec.Layers), spec.User)
	}
	for i, name := range Binaries {
		if tree := spec.Layers[i+1].Tree; !tree.Has("usr/bin/"+name) || len(tree.Entries()) != 3 {
			t.Errorf("layer %s holds %v", name, tree.Entries())
		}
	}
	if all, err := authorities(dir); err != nil || string(all) != "A.crt\nB.crt\n" {
		t.Errorf("got certificates %q, %v", all, err)
	}
}

func TestSpecFailsWithoutCertificates(t *testing.T) {
	if _, err := Spec(debian.Extracted{Dir: t.TempDir()}, "bin"); err == nil || !strings.Contains(err.Error(), "certificates") {
		t.Errorf("got error %v, want one about certificates", err)
	}
}
