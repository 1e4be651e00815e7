package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// publish lays files out as the kubelet does.
func publish(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		write(t, filepath.Join(dir, "..2026", name), []byte(content))
	}
	if err := errors.Join(os.MkdirAll(dir+"/..2026", 0o755), os.Symlink("..2026", dir+"/..data")); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		if err := os.Symlink("..data/"+top, filepath.Join(dir, top)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
}

func TestDataBecomesAnImage(t *testing.T) {
	files := map[string]string{"Application.Settings-Production.yaml": "a: 1\r\n", "deep/labels": "app=web"}
	for volume, label := range map[string]string{
		"{name: v, configMap: {name: c}}":                                     "cfgdata",
		"{name: v, configMap: {name: c, volumeLabel: Settings}}":              "Settings",
		"{name: v, secret: {secretName: s, volumeLabel: keys}}":               "keys",
		"{name: v, serviceAccount: {serviceAccountName: robot}}":              "cfgdata",
		"{name: v, downwardAPI: {fields: [], volumeLabel: " + long(32) + "}}": long(32),
	} {
		d := dirs(t)
		publish(t, d.Secrets+"/v", files)
		s, err := d.Prepare(t.Context(), volumes(t, volume))
		if err != nil {
			t.Errorf("%s: %v", volume, err)
			continue
		}
		b, err := file.OpenFromPath(s["v"].Path, true)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		image, err := iso9660.Read(b, 0, 0, 2048)
		if err != nil || strings.TrimSpace(image.Label()) != label {
			t.Fatalf("%s: label %v, %v", volume, image, err)
		}
		for name, want := range files {
			if got, err := image.ReadFile(name); err != nil || string(got) != want {
				t.Errorf("%s: %s holds %q, %v", volume, name, got, err)
			}
		}
	}
}

func long(n int) string { return strings.Repeat("L", n) }

func TestDataThatIsNotThereOrNotRight(t *testing.T) {
	for volume, want := range map[string]string{
		"{name: v, configMap: {name: c}}":                                   "spec.volumes[0].configMap.name",
		"{name: v, configMap: {name: c, optional: true}}":                   "",
		"{name: v, secret: {secretName: s}}":                                "spec.volumes[0].secret.secretName",
		"{name: v, secret: {secretName: s, optional: true}}":                "",
		"{name: v, sysprep: {secret: {name: s}}}":                           "spec.volumes[0].sysprep.secret.name",
		"{name: full, sysprep: {configMap: {name: c}}}":                     "spec.volumes[0].sysprep.configMap.name",
		"{name: full, configMap: {name: c, volumeLabel: " + long(33) + "}}": "spec.volumes[0].configMap.volumeLabel",
		"{name: answers, sysprep: {configMap: {name: c}}}":                  "",
	} {
		d := dirs(t)
		publish(t, d.Secrets+"/v", nil)
		publish(t, d.Secrets+"/full", map[string]string{"other.xml": "x"})
		publish(t, d.Secrets+"/answers", map[string]string{"Autounattend.XML": "x"})
		_, err := d.Prepare(t.Context(), volumes(t, volume))
		got := ""
		if refusal := (*field.Error)(nil); errors.As(err, &refusal) {
			got = refusal.Field
		}
		if got != want || (err == nil) != (want == "") {
			t.Errorf("%s: got %v, want a refusal at %q", volume, err, want)
		}
	}
}

func TestDataStaysInItsDirectory(t *testing.T) {
	d := dirs(t)
	write(t, d.Secrets+"/outside", []byte("not yours"))
	publish(t, d.Secrets+"/v", map[string]string{"mine": "x"})
	if err := os.Symlink("../../outside", d.Secrets+"/v/..2026/theirs"); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Prepare(t.Context(), volumes(t, "{name: v, configMap: {name: c}}")); err == nil {
		t.Errorf("made %+v of a file outside", s)
	}
}
