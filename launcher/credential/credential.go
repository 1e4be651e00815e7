// Package credential brings ssh keys and passwords from the Secrets of a VM's owner into its guest: by the seed of
// cloud-init once, by the guest's agent for as long as the guest runs.
package credential

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/projected"
)

// Secrets is the directory that holds one mounted Secret per name.
type Secrets string

// Seeded returns the public keys that the seed of a volume has to carry, in the order of spec.accessCredentials and of
// the Secrets' keys. A Secret that isn't there, or holds no key, is a *field.Error.
func (s Secrets) Seeded(vmi *v1.VirtualMachineInstance, v *v1.Volume) ([]string, error) {
	var all []string
	for i, c := range vmi.Spec.AccessCredentials {
		if c.SSHPublicKey == nil || c.SSHPublicKey.Source.Secret == nil || !seeds(c.SSHPublicKey.PropagationMethod, v) {
			continue
		}
		keys, err := s.keys(credentialPath(i).Child("sshPublicKey"), c.SSHPublicKey.Source.Secret.SecretName)
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
	}
	return all, nil
}

func seeds(m v1.SSHPublicKeyAccessCredentialPropagationMethod, v *v1.Volume) bool {
	return m.NoCloud != nil && v.CloudInitNoCloud != nil || m.ConfigDrive != nil && v.CloudInitConfigDrive != nil
}

// ByAgent tells whether any of the credentials goes by the guest's agent.
func ByAgent(list []v1.AccessCredential) bool {
	return slices.ContainsFunc(list, func(c v1.AccessCredential) bool {
		return c.UserPassword != nil || c.SSHPublicKey != nil && c.SSHPublicKey.PropagationMethod.QemuGuestAgent != nil
	})
}

// Calls returns what the guest's agent has to be asked for so that the guest has the credentials that go by it: first
// the keys of each user, all of them at once, then the passwords. What can't be read is a *field.Error; the calls for
// everything else are returned with it.
func (s Secrets) Calls(list []v1.AccessCredential) ([]driver.AgentCall, field.ErrorList) {
	var errs field.ErrorList
	var keys, passwords []driver.AgentCall
	at := map[string]int{} // of a user's keys
	for i := range list {
		path := credentialPath(i)
		switch c := list[i]; {
		case c.SSHPublicKey != nil && c.SSHPublicKey.PropagationMethod.QemuGuestAgent != nil && c.SSHPublicKey.Source.Secret != nil:
			found, err := s.keys(path.Child("sshPublicKey"), c.SSHPublicKey.Source.Secret.SecretName)
			if err != nil {
				errs = append(errs, err)
			}
			for _, user := range c.SSHPublicKey.PropagationMethod.QemuGuestAgent.Users {
				keys = withKeys(keys, at, user, found)
			}
		case c.UserPassword != nil && c.UserPassword.Source.Secret != nil:
			found, err := s.passwords(path.Child("userPassword"), c.UserPassword.Source.Secret.SecretName)
			if err != nil {
				errs = append(errs, err)
			}
			passwords = append(passwords, found...)
		}
	}
	return append(keys, passwords...), errs
}

func withKeys(calls []driver.AgentCall, at map[string]int, user string, keys []string) []driver.AgentCall {
	i, known := at[user]
	if !known {
		i = len(calls)
		at[user], calls = i, append(calls, driver.SetKeys{User: user})
	}
	set, _ := calls[i].(driver.SetKeys)
	for _, k := range keys {
		if !slices.Contains(set.Keys, k) {
			set.Keys = append(set.Keys, k)
		}
	}
	calls[i] = set
	return calls
}

// keys are the lines of every value of a Secret that are neither empty nor comments.
func (s Secrets) keys(path *field.Path, secret string) ([]string, *field.Error) {
	files, err := s.read(path, secret)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, f := range files {
		for line := range strings.Lines(string(f.Content)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.ContainsRune(line, 0) {
				keys = append(keys, line)
			}
		}
	}
	return keys, nil
}

// passwords are the values of a Secret, whose keys are the users. One line end behind a password is not part of it.
func (s Secrets) passwords(path *field.Path, secret string) ([]driver.AgentCall, *field.Error) {
	files, err := s.read(path, secret)
	if err != nil {
		return nil, err
	}
	var calls []driver.AgentCall
	for _, f := range files {
		password := strings.TrimSuffix(strings.TrimSuffix(string(f.Content), "\n"), "\r")
		if password == "" || strings.ContainsAny(password, "\x00\r\n") {
			return nil, field.Invalid(name(path), secret, fmt.Sprintf("key %q: must hold a password of one line", f.Name))
		}
		calls = append(calls, driver.SetPassword{User: f.Name, Password: password})
	}
	return calls, nil
}

func (s Secrets) read(path *field.Path, secret string) ([]projected.File, *field.Error) {
	if secret != filepath.Base(secret) || !filepath.IsLocal(secret) {
		return nil, field.Invalid(name(path), secret, "must be the name of a Secret")
	}
	files, err := projected.Read(filepath.Join(string(s), secret))
	if err != nil {
		return nil, field.InternalError(name(path), fmt.Errorf("reading Secret %q: %w", secret, err))
	}
	if len(files) == 0 {
		return nil, field.NotFound(name(path), secret)
	}
	return files, nil
}

func name(path *field.Path) *field.Path { return path.Child("source", "secret", "secretName") }

func credentialPath(i int) *field.Path { return field.NewPath("spec", "accessCredentials").Index(i) }
