package cloudinit_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/cloudinit"
	"virtstack.io/virtstack/launcher/iso"
)

// Whatever a source holds, the guest reads its data byte for byte, or an error names the field; and what it is told of
// itself is a name and an ID, whatever characters they have.
func FuzzSeed(f *testing.F) {
	f.Add(awkward, "", "version: 2\n", "web", true)
	f.Add("", base64.StdEncoding.EncodeToString([]byte(awkward)), "", "true", false)
	f.Add("", "!", "x", "web\npublic-keys: [k]", true)
	f.Add("", "IyE\n=", "\x00\xff", "1e3", false)
	f.Add("a", strings.Repeat("QUJD", 1000), strings.Repeat("n", 3000), "\" : #", true)
	f.Fuzz(func(t *testing.T, user, encoded, network, name string, secret bool) {
		if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
			return // neither YAML nor JSON in YAML could say it
		}
		source := &v1.CloudInitNoCloudSource{UserData: user, UserDataBase64: encoded, NetworkData: network}
		secrets := fstest.MapFS{}
		if secret {
			source.UserDataSecretRef = &k8sv1.LocalObjectReference{Name: "s"}
			secrets["userdata"] = &fstest.MapFile{Data: []byte(user)}
		}
		machine := cloudinit.Machine{Instance: name, Hostname: name}
		seed, err := cloudinit.NoCloud(source, fs.FS(secrets).(cloudinit.Secrets), machine)
		drive, refused := cloudinit.ConfigDrive((*v1.CloudInitConfigDriveSource)(source), fs.FS(secrets).(cloudinit.Secrets), machine)
		if (err == nil) != (refused == nil) {
			t.Fatalf("NoCloud: %v; ConfigDrive: %v", err, refused)
		}
		if err != nil {
			return
		}
		want := wanted(user, encoded, secret)
		if got := content(t, seed, "user-data"); !bytes.Equal(got, want) {
			t.Errorf("user-data is %q, want %q", got, want)
		}
		if got := content(t, drive, "openstack/latest/user_data"); !bytes.Equal(got, want) {
			t.Errorf("user_data is %q, want %q", got, want)
		}
		told(t, name, content(t, seed, "meta-data"), "instance-id", "local-hostname")
		told(t, name, content(t, drive, "openstack/latest/meta_data.json"), "uuid", "instance_id", "hostname", "local_hostname")
	})
}

func wanted(user, encoded string, secret bool) []byte {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || secret || encoded == "" {
		return []byte(user)
	}
	return decoded
}

// content is that of the file, which the image must take.
func content(t *testing.T, s cloudinit.Seed, name string) []byte {
	t.Helper()
	if err := iso.Write(&bytes.Buffer{}, s.Label, s.Files); err != nil {
		t.Errorf("writing the image: %v", err)
	}
	for _, f := range s.Files {
		if f.Name == name {
			return f.Content
		}
	}
	return nil
}

// told fails unless the YAML says the name under each key, and nothing else.
func told(t *testing.T, name string, text []byte, keys ...string) {
	t.Helper()
	got := map[string]any{}
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	plain, err := json.Marshal(name)
	want := ""
	if err != nil || json.Unmarshal(plain, &want) != nil { // what isn't UTF-8 becomes U+FFFD
		t.Fatal(err)
	}
	for _, key := range keys {
		if got[key] != want {
			t.Errorf("%s is %#v, want %q", key, got[key], want)
		}
	}
	if len(got) != len(keys) {
		t.Errorf("the guest is told %v, want only %v", got, keys)
	}
}
