//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// Keys and a password reach a running guest by its agent, and so does a change of their Secret; nobody who reads the
// cluster's objects sees the password.
func TestAccessCredentialsByTheAgent(t *testing.T) {
	p := newPlace(t, "credentials")
	const password = "correct-horse-battery"
	p.secret("passwords", map[string]string{"root": password})
	p.create(p.vm("web", func(vm *v1.VirtualMachine) {
		key, word := &v1.SSHPublicKeyAccessCredential{}, &v1.UserPasswordAccessCredential{}
		key.Source.Secret = &v1.AccessCredentialSecretSource{SecretName: "keys"}
		key.PropagationMethod.QemuGuestAgent = &v1.QemuGuestAgentSSHPublicKeyAccessCredentialPropagation{Users: []string{"root"}}
		word.Source.Secret = &v1.AccessCredentialSecretSource{SecretName: "passwords"}
		word.PropagationMethod.QemuGuestAgent = &v1.QemuGuestAgentUserPasswordAccessCredentialPropagation{}
		vm.Spec.Template.Spec.AccessCredentials = []v1.AccessCredential{{SSHPublicKey: key}, {UserPassword: word}}
	}))
	p.phase("web", v1.Running, 2*time.Minute)
	p.credentials("web", k8sv1.ConditionFalse, "spec.accessCredentials[0].sshPublicKey.source.secret.secretName", `"keys"`)
	c := p.login("web", 3*time.Minute)
	for _, answer := range [][2]string{{"root", "Password: "}, {password, "# "}} {
		p.asked(c, answer[0], answer[1])
	}
	p.secret("keys", map[string]string{"mine": sshKey})
	p.credentials("web", k8sv1.ConditionTrue)
	p.asked(c, "cat /root/.ssh/authorized_keys", sshKey)
	secret := &k8sv1.Secret{ObjectMeta: objectMeta(p.ns, "keys"), StringData: map[string]string{"mine": strings.Replace(sshKey, " e2e", " later", 1)}}
	p.must(theLab.Client.Update(t.Context(), secret))
	p.must(lab.Until(t.Context(), 3*time.Minute, "the new key to arrive", func(ctx context.Context) (bool, string, error) {
		err := c.Send("cat /root/.ssh/authorized_keys\n")
		return err == nil && c.Expect(ctx, "= later", 5*time.Second) == nil, "not yet", err
	}))
	p.asked(c, `echo "keys:$(grep -c . /root/.ssh/authorized_keys)"`, "keys:1")
	for _, args := range [][]string{{"get", "vm,vmi,pod,events", "-n", p.ns, "-o", "yaml"}, {"logs", "-n", p.ns, "-l", "kubevirt.io=virt-launcher", "--tail=-1"}} {
		if out, err := theLab.Kubectl(t.Context(), args...); err != nil || strings.Contains(out, password) {
			t.Errorf("kubectl %s shows the password: %v", strings.Join(args, " "), err)
		}
	}
}

// credentials waits for the condition that the guest has its keys and passwords.
func (p place) credentials(name string, want k8sv1.ConditionStatus, texts ...string) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), 3*time.Minute, fmt.Sprintf("AccessCredentialsSynchronized of VMI %s to be %s", name, want), func(ctx context.Context) (bool, string, error) {
		vmi := p.phase(name, v1.Running, time.Second)
		for _, c := range vmi.Status.Conditions {
			if c.Type == v1.VirtualMachineInstanceAccessCredentialsSynchronized {
				return c.Status == want && containsAll(c.Message, texts), string(c.Status) + " " + c.Message, nil
			}
		}
		return false, "no condition", nil
	}))
}
