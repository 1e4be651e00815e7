package credential_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/credential"
	"virtstack.io/virtstack/launcher/driver"
)

// publish lays a Secret out as the kubelet does, all at once, or takes it away where it has no keys.
func publish(t *testing.T, dir credential.Secrets, secret string, values map[string]string) {
	t.Helper()
	at := filepath.Join(string(dir), secret)
	fresh, err := os.MkdirTemp(string(dir), "..")
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range values {
		if err := os.WriteFile(filepath.Join(fresh, key), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.RemoveAll(at), os.Mkdir(at, 0o700)); err != nil {
		t.Fatal(err)
	}
	if len(values) > 0 {
		err = os.Rename(fresh, filepath.Join(at, "..1"))
		err = errors.Join(err, os.Symlink("..1", filepath.Join(at, "..data")))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func wanted(t *testing.T, text string) []v1.AccessCredential {
	t.Helper()
	var list []v1.AccessCredential
	if err := yaml.UnmarshalStrict([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

const (
	keysByAgent = `
- sshPublicKey: {source: {secret: {secretName: team}}, propagationMethod: {qemuGuestAgent: {users: [root, ops]}}}
- sshPublicKey: {source: {secret: {secretName: mine}}, propagationMethod: {qemuGuestAgent: {users: [ops]}}}
`
	passwordsByAgent = `
- userPassword: {source: {secret: {secretName: words}}, propagationMethod: {qemuGuestAgent: {}}}
`
	seeded = `
- sshPublicKey: {source: {secret: {secretName: team}}, propagationMethod: {noCloud: {}}}
- sshPublicKey: {source: {secret: {secretName: mine}}, propagationMethod: {configDrive: {}}}
`
)

func filled(t *testing.T) credential.Secrets {
	t.Helper()
	s := credential.Secrets(t.TempDir())
	publish(t, s, "team", map[string]string{"a": "# ours\nssh-ed25519 AAA a\r\n\n", "b": "ssh-rsa BBB b"})
	publish(t, s, "mine", map[string]string{"k": "ssh-rsa BBB b\nssh-ed25519 CCC c\n"})
	publish(t, s, "words", map[string]string{"root": "s3cret ; $(x)\n", "ops": " kept "})
	publish(t, s, "lines", map[string]string{"root": "a\nb"})
	publish(t, s, "gone", nil)
	return s
}

func TestCallsOfAnAgent(t *testing.T) {
	s := filled(t)
	got, errs := s.Calls(wanted(t, keysByAgent+passwordsByAgent+seeded))
	want := []driver.AgentCall{
		driver.SetKeys{User: "root", Keys: []string{"ssh-ed25519 AAA a", "ssh-rsa BBB b"}},
		driver.SetKeys{User: "ops", Keys: []string{"ssh-ed25519 AAA a", "ssh-rsa BBB b", "ssh-ed25519 CCC c"}},
		driver.SetPassword{User: "ops", Password: " kept "},
		driver.SetPassword{User: "root", Password: "s3cret ; $(x)"},
	}
	if d := cmp.Diff(want, got); d != "" || len(errs) > 0 {
		t.Errorf("%v (-want +got):\n%s", errs, d)
	}
}

func TestSeedsGetTheirKeys(t *testing.T) {
	s, vmi := filled(t), &v1.VirtualMachineInstance{}
	vmi.Spec.AccessCredentials = wanted(t, keysByAgent+passwordsByAgent+seeded)
	for want, source := range map[string]v1.VolumeSource{
		"ssh-ed25519 AAA a|ssh-rsa BBB b": {CloudInitNoCloud: &v1.CloudInitNoCloudSource{}},
		"ssh-rsa BBB b|ssh-ed25519 CCC c": {CloudInitConfigDrive: &v1.CloudInitConfigDriveSource{}},
		"":                                {EmptyDisk: &v1.EmptyDiskSource{}},
	} {
		got, err := s.Seeded(vmi, &v1.Volume{VolumeSource: source})
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

// What is wrong is named, never what is secret; what isn't wrong is done all the same.
func TestWhatIsWrongWithASecretIsNamed(t *testing.T) {
	for secret, want := range map[string]string{
		"gone":   `spec.accessCredentials[0].userPassword.source.secret.secretName: Not found: "gone"`,
		"lines":  `spec.accessCredentials[0].userPassword.source.secret.secretName: Invalid value: "lines": key "root": must hold a password of one line`,
		"../etc": `spec.accessCredentials[0].userPassword.source.secret.secretName: Invalid value: "../etc": must be the name of a Secret`,
		"..":     `spec.accessCredentials[0].userPassword.source.secret.secretName: Invalid value: "..": must be the name of a Secret`,
	} {
		calls, errs := filled(t).Calls(wanted(t, strings.ReplaceAll(passwordsByAgent, "words", `"`+secret+`"`)+keysByAgent))
		if len(errs) != 1 || errs[0].Error() != want || len(calls) != 2 {
			t.Errorf("%s: got %v and %d calls, want %s", secret, errs, len(calls), want)
		}
	}
}
