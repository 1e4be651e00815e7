package sourcetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// SignSSH makes git sign with the key what it is told to sign.
func (r *Repository) SignSSH(k Key) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "key")
	if err := os.WriteFile(file, k.Private, 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.Git("config", "gpg.format", "ssh")
	r.Git("config", "user.signingKey", file)
}

// GPG is a key of gpg.
type GPG struct {
	// Public is armored.
	Public []byte

	home string
}

// NewGPG makes a key.
func NewGPG(t testing.TB) GPG {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg-") // its sockets must have short paths
	if err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) []byte {
		cmd := exec.Command(program, append([]string{"--homedir", home}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v", program, args, err)
		}
		return out
	}
	t.Cleanup(func() {
		run("gpgconf", "--kill", "all")
		_ = os.RemoveAll(home)
	})
	run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", "t@example.test", "ed25519", "sign", "never")
	return GPG{Public: run("gpg", "--batch", "--armor", "--export"), home: home}
}

// SignGPG makes git sign with the key what it is told to sign.
func (r *Repository) SignGPG(k GPG) {
	r.t.Helper()
	program := filepath.Join(r.t.TempDir(), "gpg")
	script := "#!/bin/sh\nexec gpg --homedir " + k.home + " \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.Git("config", "gpg.format", "openpgp")
	r.Git("config", "gpg.program", program)
	r.Git("config", "user.signingKey", "t@example.test")
}

// SignedCommit is Commit, signed.
func (r *Repository) SignedCommit(name, content string) string {
	r.t.Helper()
	r.Write(name, content)
	r.Git("add", "-A")
	r.Git("commit", "-q", "-S", "-m", "a signed commit")
	return strings.TrimSpace(r.Git("rev-parse", "HEAD"))
}
