// Package cloudinit makes the seed of a guest: an ISO 9660 image by NoCloud or ConfigDrive. What the owner of the VM
// wrote reaches the guest byte for byte.
package cloudinit

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/iso"
)

// Largest is how many bytes of user data, or of network data, a seed may hold once decoded: what a Secret can carry.
const Largest = 1 << 20

// Labels by which cloud-init finds its seeds.
const (
	noCloudLabel     = "cidata"
	configDriveLabel = "config-2"
)

// latest is the directory of a ConfigDrive that cloud-init reads.
const latest = "openstack/latest/"

// Seed is an image for a guest to read.
type Seed struct {
	Label string
	Files []iso.File
}

// Machine is what a guest is told of itself: an ID that stays for as long as the machine does, its name, and the public
// keys that may log in.
type Machine struct {
	Instance, Hostname string
	Keys               []string
}

// keys are numbered, as cloud-init and OpenStack have them; nil: there are none.
func (m Machine) keys() map[string]string {
	var keys map[string]string
	for i, k := range m.Keys {
		if keys == nil {
			keys = map[string]string{}
		}
		keys[strconv.Itoa(i)] = k
	}
	return keys
}

// Secrets reads keys of the Secrets that a source refers to, as they are mounted in the launcher. A key that isn't
// there gives an error for which errors.Is(err, fs.ErrNotExist) holds.
type Secrets interface {
	ReadFile(name string) ([]byte, error)
}

// NoCloud reads a NoCloud source. Without network data there is no network-config; user-data there always is. Errors
// name the field of the source.
func NoCloud(source *v1.CloudInitNoCloudSource, secrets Secrets, m Machine) (Seed, error) {
	user, network, err := read(source, secrets)
	if err != nil {
		return Seed{}, err
	}
	fields := map[string]any{"instance-id": m.Instance, "local-hostname": m.Hostname}
	if keys := m.keys(); keys != nil {
		fields["public-keys"] = keys
	}
	meta, err := yaml.Marshal(fields)
	if err != nil {
		return Seed{}, fmt.Errorf("writing meta-data: %w", err)
	}
	s := Seed{noCloudLabel, []iso.File{{Name: "meta-data", Content: meta}, {Name: "user-data", Content: user}}}
	return s.with("network-config", network), nil
}

// ConfigDrive reads a ConfigDrive source, as NoCloud does; user data that isn't there gives no file.
func ConfigDrive(source *v1.CloudInitConfigDriveSource, secrets Secrets, m Machine) (Seed, error) {
	user, network, err := read((*v1.CloudInitNoCloudSource)(source), secrets)
	if err != nil {
		return Seed{}, err
	}
	meta, err := json.Marshal(struct {
		UUID          string            `json:"uuid"`
		InstanceID    string            `json:"instance_id"`
		Hostname      string            `json:"hostname"`
		LocalHostname string            `json:"local_hostname"`
		PublicKeys    map[string]string `json:"public_keys,omitempty"`
	}{m.Instance, m.Instance, m.Hostname, m.Hostname, m.keys()})
	s := Seed{configDriveLabel, []iso.File{{Name: latest + "meta_data.json", Content: meta}}}
	return s.with(latest+"user_data", user).with(latest+"network_data.json", network), err
}

// with adds a file unless there is nothing to be in it.
func (s Seed) with(name string, content []byte) Seed {
	if content != nil {
		s.Files = append(s.Files, iso.File{Name: name, Content: content})
	}
	return s
}

func read(source *v1.CloudInitNoCloudSource, secrets Secrets) (user, network []byte, err error) {
	user, err = data(part{"userData", source.UserData, source.UserDataBase64, name(source.UserDataSecretRef), "secretRef", []string{"userdata", "userData"}}, secrets)
	if err != nil {
		return nil, nil, err
	}
	network, err = data(part{"networkData", source.NetworkData, source.NetworkDataBase64, name(source.NetworkDataSecretRef), "networkDataSecretRef", []string{"networkdata", "networkData"}}, secrets)
	return user, network, err
}

func name(ref *k8sv1.LocalObjectReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// part is user data or network data: where it may come from.
type part struct {
	field, plain, base64 string
	secret, ref          string // the Secret's name, and the field that names it
	keys                 []string
}

func data(p part, secrets Secrets) ([]byte, error) {
	raw, err := p.read(secrets)
	if err != nil {
		return nil, err
	}
	if len(raw) > Largest {
		return nil, fmt.Errorf("%s: %d bytes, at most %d", p.field, len(raw), Largest)
	}
	return raw, nil
}

func (p part) read(secrets Secrets) ([]byte, error) {
	switch {
	case p.secret != "":
		var errs []error
		for _, key := range p.keys {
			raw, err := secrets.ReadFile(key)
			if err == nil {
				return raw, nil
			}
			errs = append(errs, err)
		}
		return nil, fmt.Errorf("%s: Secret %q isn't there yet or has none of the keys %q: %w", p.ref, p.secret, p.keys, errors.Join(errs...))
	case p.base64 != "":
		raw, err := base64.StdEncoding.DecodeString(p.base64)
		if err != nil {
			return nil, fmt.Errorf("%sBase64: must be standard base64: %w", p.field, err)
		}
		return raw, nil
	case p.plain != "":
		return []byte(p.plain), nil
	}
	return nil, nil
}

// Write makes the image at path, which must not be there.
func (s Seed) Write(path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return iso.Write(f, s.Label, s.Files)
}
