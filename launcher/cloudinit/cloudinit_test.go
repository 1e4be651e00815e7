package cloudinit_test

import (
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/cloudinit"
)

const awkward = "#cloud-config\r\nhostname: bücher\r\nlast: no newline"

func image(t *testing.T, s cloudinit.Seed) *iso9660.FileSystem {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed.iso")
	if err := s.Write(path, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	b, err := file.OpenFromPath(path, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	info, err := b.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if info.Size()%2048 != 0 {
		t.Errorf("an image of %d bytes is no whole number of blocks", info.Size())
	}
	fs, err := iso9660.Read(b, info.Size(), 0, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func read(t *testing.T, fs *iso9660.FileSystem, name string) string {
	t.Helper()
	f, err := fs.OpenFile("/"+name, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestSeedIsByteExact(t *testing.T) {
	seed, err := cloudinit.From(&v1.CloudInitNoCloudSource{UserData: awkward, NetworkDataBase64: base64.StdEncoding.EncodeToString([]byte("version: 2\n"))}, nil, "uid-1", "web")
	if err != nil {
		t.Fatal(err)
	}
	fs := image(t, seed)
	if strings.TrimSpace(fs.Label()) != "cidata" {
		t.Errorf("label %q, want cidata", fs.Label())
	}
	for name, want := range map[string]string{"user-data": awkward, "network-config": "version: 2\n", "meta-data": "instance-id: uid-1\nlocal-hostname: web\n"} {
		if got := read(t, fs, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// What case 17 wants: base64 as the tool of that name wraps it, and as much as a Secret can carry.
func TestSeedThroughASecretAndWrappedBase64(t *testing.T) {
	big := strings.Repeat("0123456789abcdef\r\n", 204800/18)
	source := &v1.CloudInitNoCloudSource{UserDataBase64: "eDog\nMQ==\n", NetworkDataSecretRef: ptrTo("big")}
	seed, err := cloudinit.From(source, fstest.MapFS{"networkdata": {Data: []byte(big)}}, "i", "h")
	if err != nil {
		t.Fatal(err)
	}
	fs := image(t, seed)
	if got := read(t, fs, "user-data"); got != "x: 1" {
		t.Errorf("user-data is %q", got)
	}
	if got := read(t, fs, "network-config"); got != big {
		t.Errorf("network-config of %d bytes is not the Secret's", len(got))
	}
}

// What case 08 wants: network data alone gives an empty user-data, and nothing at all no network-config.
func TestPartsThatAreNotThere(t *testing.T) {
	fs := image(t, cloudinit.Seed{Meta: []byte("m"), Network: []byte("n")})
	if got := read(t, fs, "user-data"); got != "" {
		t.Errorf("user-data is %q, want it empty", got)
	}
	fs = image(t, cloudinit.Seed{Meta: []byte("m"), User: []byte("u")})
	if f, err := fs.OpenFile("/network-config", 0); err == nil {
		t.Errorf("there is a network-config: %v", f)
	}
}

func TestSecretsAndRefusals(t *testing.T) {
	ref := &v1.CloudInitNoCloudSource{}
	ref.UserDataSecretRef = ptrTo("web-seed")
	seed, err := cloudinit.From(ref, fstest.MapFS{"userData": {Data: []byte(awkward)}}, "i", "h")
	if err != nil || string(seed.User) != awkward {
		t.Errorf("got %q, %v", seed.User, err)
	}
	if _, err := cloudinit.From(ref, fstest.MapFS{}, "i", "h"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "userDataSecretRef") {
		t.Errorf("a Secret without the key: %v", err)
	}
	if _, err := cloudinit.From(&v1.CloudInitNoCloudSource{UserDataBase64: "*"}, nil, "i", "h"); err == nil || !strings.Contains(err.Error(), "userDataBase64") {
		t.Errorf("bad base64: %v", err)
	}
	if _, err := cloudinit.From(&v1.CloudInitNoCloudSource{UserData: strings.Repeat("x", cloudinit.Largest+1)}, nil, "i", "h"); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too much: %v", err)
	}
}

func ptrTo(secret string) *k8sv1.LocalObjectReference {
	return &k8sv1.LocalObjectReference{Name: secret}
}
