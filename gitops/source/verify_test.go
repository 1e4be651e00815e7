package source_test

import (
	"strings"
	"testing"

	"virtstack.io/virtstack/gitops/source"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

func verified(r *sourcetest.Repository, ref source.Ref, v source.Verify) source.Git {
	g := of(r, ref)
	g.Verify = &v
	return g
}

// signers are a repository that signs with a key of each kind, the public keys, and others' keys.
func signers(t *testing.T) map[string]struct {
	sign      func(*sourcetest.Repository)
	good, bad map[string][]byte
} {
	ssh, gpg := sourcetest.NewKey(t), sourcetest.NewGPG(t)
	otherSSH, otherGPG := sourcetest.NewKey(t), sourcetest.NewGPG(t)
	return map[string]struct {
		sign      func(*sourcetest.Repository)
		good, bad map[string][]byte
	}{
		"ssh": {func(r *sourcetest.Repository) { r.SignSSH(ssh) },
			credentials("a.sshpub", string(otherSSH.Public), "b.sshpub", string(ssh.Public), "c.asc", string(otherGPG.Public)),
			credentials("a.sshpub", string(otherSSH.Public), "c.asc", string(otherGPG.Public))},
		"gpg": {func(r *sourcetest.Repository) { r.SignGPG(gpg) },
			credentials("a.asc", string(otherGPG.Public), "b.asc", string(gpg.Public), "c.sshpub", string(otherSSH.Public)),
			credentials("a.asc", string(otherGPG.Public), "c.sshpub", string(otherSSH.Public))},
	}
}

func TestSignedCommits(t *testing.T) {
	for name, who := range signers(t) {
		t.Run(name, func(t *testing.T) {
			r := sourcetest.Serve(t)
			who.sign(r)
			hash := r.SignedCommit("vm.yaml", "x")
			main := source.Ref{Branch: "main"}
			holds(t, verified(r, main, source.Verify{Commit: true, Keys: who.good}), "main@sha1:"+hash, "x")
			refuses(t, verified(r, main, source.Verify{Commit: true, Keys: who.bad}), source.ErrUnverified, hash, "is signed by no ", strings.ToUpper(name)+" key of those that are allowed")
			none := map[string][]byte{}
			for k, v := range who.good {
				if (name == "ssh") != strings.HasSuffix(k, ".sshpub") {
					none[k] = v
				}
			}
			refuses(t, verified(r, main, source.Verify{Commit: true, Keys: none}), source.ErrUnverified, "there is no public key of that kind")
			unsigned := r.Commit("vm.yaml", "y")
			refuses(t, verified(r, main, source.Verify{Commit: true, Keys: who.good}), source.ErrUnverified, "commit "+unsigned+" is not signed")
			refuses(t, verified(r, main, source.Verify{Tag: true, Keys: who.good}), source.ErrUnverified, "branch main is no tag")
		})
	}
}

func TestSignedTags(t *testing.T) {
	for name, who := range signers(t) {
		t.Run(name, func(t *testing.T) {
			r := sourcetest.Serve(t)
			who.sign(r)
			hash := r.Commit("vm.yaml", "x")
			r.Git("tag", "-s", "-m", "one", "v1.0.0")
			r.Git("tag", "-a", "-m", "two", "v2.0.0")
			r.Git("tag", "v3.0.0")
			r.Git("update-ref", "refs/tags/v4.0.0", "refs/tags/v1.0.0") // a signature that is of another tag
			tag := source.Verify{Tag: true, Keys: who.good}
			for _, ref := range []source.Ref{{Tag: "v1.0.0"}, {SemVer: "1.x"}} {
				holds(t, verified(r, ref, tag), "v1.0.0@sha1:"+hash, "x")
			}
			holds(t, verified(r, source.Ref{Name: "refs/tags/v1.0.0"}, tag), "refs/tags/v1.0.0@sha1:"+hash, "x")
			refuses(t, verified(r, source.Ref{Tag: "v1.0.0"}, source.Verify{Tag: true, Keys: who.bad}), source.ErrUnverified, "tag v1.0.0 is signed by no ")
			refuses(t, verified(r, source.Ref{Tag: "v1.0.0"}, source.Verify{Tag: true, Commit: true, Keys: who.good}), source.ErrUnverified, "commit "+hash+" is not signed")
			refuses(t, verified(r, source.Ref{Tag: "v2.0.0"}, tag), source.ErrUnverified, "tag v2.0.0 is not signed")
			refuses(t, verified(r, source.Ref{SemVer: "3.x"}, tag), source.ErrUnverified, "tag v3.0.0 is not annotated")
			refuses(t, verified(r, source.Ref{Tag: "v4.0.0"}, tag), source.ErrUnverified, "refs/tags/v4.0.0 leads to the signed tag v1.0.0")
		})
	}
}

// Content that is changed after the signature was made has none.
func TestASignatureIsOfItsContent(t *testing.T) {
	r, key := sourcetest.Serve(t), sourcetest.NewKey(t)
	r.SignSSH(key)
	r.SignedCommit("vm.yaml", "x")
	object := strings.Replace(r.Git("cat-file", "commit", "HEAD"), "a signed commit", "a wrong commit", 1)
	r.Write("../object", object)
	forged := strings.TrimSpace(r.Git("hash-object", "-t", "commit", "-w", "../object"))
	r.Git("reset", "-q", "--hard", forged)
	keys := credentials("a.sshpub", string(key.Public))
	refuses(t, verified(r, source.Ref{Branch: "main"}, source.Verify{Commit: true, Keys: keys}), source.ErrUnverified, forged)
}

func TestTheShapeOfKeys(t *testing.T) {
	r := sourcetest.Serve(t)
	for name, tc := range map[string]struct {
		keys map[string][]byte
		want string
	}{
		"none":         {nil, "there is no public key"},
		"another name": {credentials("key.pub", "canary"), "the name of key key.pub must end in .asc"},
	} {
		t.Run(name, func(t *testing.T) {
			refuses(t, verified(r, source.Ref{Branch: "main"}, source.Verify{Commit: true, Keys: tc.keys}), source.ErrKeys, tc.want)
		})
	}
}
