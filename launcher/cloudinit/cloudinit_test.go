package cloudinit_test

import (
	"encoding/base64"
	"encoding/json"
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

var web = cloudinit.Machine{Instance: "uid-1", Hostname: "web"}

const awkward = "#cloud-config\r\nhostname: bücher\r\nlast: no newline"

func image(t *testing.T, s cloudinit.Seed) *iso9660.FileSystem {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed.iso")
	if err := s.Write(path); err != nil {
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
	seed, err := cloudinit.NoCloud(&v1.CloudInitNoCloudSource{UserData: awkward, NetworkDataBase64: base64.StdEncoding.EncodeToString([]byte("version: 2\n"))}, nil, web)
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

// As in kubevirt/kubevirt#2602: base64 as the tool of that name wraps it, and as much as a Secret can carry.
func TestSeedThroughASecretAndWrappedBase64(t *testing.T) {
	big := strings.Repeat("0123456789abcdef\r\n", 204800/18)
	source := &v1.CloudInitNoCloudSource{UserDataBase64: "eDog\nMQ==\n", NetworkDataSecretRef: ptrTo("big")}
	seed, err := cloudinit.NoCloud(source, fstest.MapFS{"networkdata": {Data: []byte(big)}}, web)
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

// As in kubevirt/kubevirt#4033: network data alone gives an empty user-data, and nothing at all no network-config.
func TestNetworkDataAlone(t *testing.T) {
	seed, err := cloudinit.NoCloud(&v1.CloudInitNoCloudSource{NetworkData: "version: 2\n"}, nil, web)
	if err != nil {
		t.Fatal(err)
	}
	fs := image(t, seed)
	if user, network := read(t, fs, "user-data"), read(t, fs, "network-config"); user != "" || network != "version: 2\n" {
		t.Errorf("user-data is %q, network-config %q", user, network)
	}
	if seed, err = cloudinit.NoCloud(&v1.CloudInitNoCloudSource{UserData: "u"}, nil, web); err != nil {
		t.Fatal(err)
	}
	if f, err := image(t, seed).OpenFile("/network-config", 0); err == nil {
		t.Errorf("there is a network-config: %v", f)
	}
}

// A ConfigDrive's network data, v1 or v2, is as committed; without user data there is no user_data.
func TestConfigDrive(t *testing.T) {
	for _, network := range []string{`{"version": 1, "config": [{"type": "physical", "name": "eth0"}]}` + "\n", "version: 2\nethernets: {}\n"} {
		source := &v1.CloudInitConfigDriveSource{NetworkDataSecretRef: ptrTo("netonly")}
		seed, err := cloudinit.ConfigDrive(source, fstest.MapFS{"networkdata": {Data: []byte(network)}}, web)
		if err != nil {
			t.Fatal(err)
		}
		fs := image(t, seed)
		if strings.TrimSpace(fs.Label()) != "config-2" {
			t.Errorf("label %q, want config-2", fs.Label())
		}
		if got := read(t, fs, "openstack/latest/network_data.json"); got != network {
			t.Errorf("network_data.json is %q, want %q", got, network)
		}
		var meta struct{ UUID, Hostname string }
		if err := json.Unmarshal([]byte(read(t, fs, "openstack/latest/meta_data.json")), &meta); err != nil || meta.UUID != web.Instance || meta.Hostname != web.Hostname {
			t.Errorf("meta_data.json says %+v, %v", meta, err)
		}
		if f, err := fs.OpenFile("/openstack/latest/user_data", 0); err == nil {
			t.Errorf("there is a user_data: %v", f)
		}
	}
	seed, err := cloudinit.ConfigDrive(&v1.CloudInitConfigDriveSource{UserData: awkward}, nil, web)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, image(t, seed), "openstack/latest/user_data"); got != awkward {
		t.Errorf("user_data is %q", got)
	}
}

func TestSecretsAndRefusals(t *testing.T) {
	ref := &v1.CloudInitNoCloudSource{}
	ref.UserDataSecretRef = ptrTo("web-seed")
	seed, err := cloudinit.NoCloud(ref, fstest.MapFS{"userData": {Data: []byte(awkward)}}, web)
	if err != nil || read(t, image(t, seed), "user-data") != awkward {
		t.Errorf("got %q, %v", seed.Files, err)
	}
	if _, err := cloudinit.NoCloud(ref, fstest.MapFS{}, web); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `secretRef: Secret "web-seed"`) {
		t.Errorf("a Secret without the key: %v", err)
	}
	if _, err := cloudinit.NoCloud(&v1.CloudInitNoCloudSource{UserDataBase64: "*"}, nil, web); err == nil || !strings.Contains(err.Error(), "userDataBase64") {
		t.Errorf("bad base64: %v", err)
	}
	if _, err := cloudinit.NoCloud(&v1.CloudInitNoCloudSource{UserData: strings.Repeat("x", cloudinit.Largest+1)}, nil, web); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too much: %v", err)
	}
}

func ptrTo(secret string) *k8sv1.LocalObjectReference {
	return &k8sv1.LocalObjectReference{Name: secret}
}
