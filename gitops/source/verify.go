package source

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/git"
	"github.com/fluxcd/pkg/git/signature"
)

// Verify says whose signature a commit or tag must have.
type Verify struct {
	// Commit and Tag say which of the two; both may be set.
	Commit, Tag bool
	// Keys are public keys by name: armored GPG key rings (.asc), SSH keys as in authorized_keys (.sshpub).
	Keys map[string][]byte
}

type signed interface {
	VerifyPGP(rings ...string) (string, error)
	VerifySSH(keys ...string) (string, error)
	SignatureType() string
}

// check returns nil if the commit, and the tag that was asked for, have the signatures they must have.
func (v *Verify) check(r Ref, c *git.Commit) error {
	if v == nil {
		return nil
	}
	pgp, ssh, err := v.sorted()
	if err != nil {
		return err
	}
	if v.Tag {
		if err := checkTag(r, c, pgp, ssh); err != nil {
			return err
		}
	}
	if v.Commit {
		return checkOne("commit "+c.Hash.String(), c, pgp, ssh)
	}
	return nil
}

// sorted returns the keys by their kind.
func (v *Verify) sorted() (pgp, ssh []string, err error) {
	for name, content := range v.Keys {
		switch {
		case strings.HasSuffix(name, ".asc"):
			pgp = append(pgp, string(content))
		case strings.HasSuffix(name, ".sshpub"):
			ssh = append(ssh, string(content))
		default:
			return nil, nil, fmt.Errorf("%w: the name of key %s must end in .asc (an armored GPG key ring) or .sshpub (SSH public keys)", ErrKeys, name)
		}
	}
	if len(pgp)+len(ssh) == 0 {
		return nil, nil, fmt.Errorf("%w: there is no public key: one whose name ends in .asc (GPG) or .sshpub (SSH) must be", ErrKeys)
	}
	return pgp, ssh, nil
}

// checkTag also sees to it that the signature is of this tag: a signed tag that is served under another name, or for
// another commit, would be a way back to an old version.
func checkTag(r Ref, c *git.Commit, pgp, ssh []string) error {
	tag := c.ReferencingTag
	if tag == nil {
		return fmt.Errorf("%w: %s is no tag: the tag is to be verified, so ref.tag, ref.semver or a ref.name of a tag must be what is followed", ErrUnverified, r)
	}
	if !git.IsAnnotatedTag(*tag) {
		return fmt.Errorf("%w: tag %s is not annotated, so it has no signature: git tag -s makes one that has", ErrUnverified, tag.Name)
	}
	if err := checkOne("tag "+tag.Name, tag, pgp, ssh); err != nil {
		return err
	}
	if want := c.Reference; want != "refs/tags/"+tag.Name && want != "refs/tags/"+tag.Name+"^{}" {
		return fmt.Errorf("%w: %s leads to the signed tag %s, which is another one", ErrUnverified, want, tag.Name)
	}
	if !strings.HasPrefix(string(tag.Encoded), "object "+c.Hash.String()+"\n") {
		return fmt.Errorf("%w: the signed tag %s is not of commit %s", ErrUnverified, tag.Name, c.Hash)
	}
	return nil
}

func checkOne(what string, s signed, pgp, ssh []string) error {
	verify, kind, have := s.VerifyPGP, "GPG", pgp
	switch s.SignatureType() {
	case "empty":
		return fmt.Errorf("%w: %s is not signed", ErrUnverified, what)
	case "ssh":
		verify, kind, have = s.VerifySSH, "SSH", ssh
	case "openpgp":
	default:
		return fmt.Errorf("%w: %s is signed in a way that is not supported: it must be by GPG or SSH", ErrUnverified, what)
	}
	if len(have) == 0 {
		return fmt.Errorf("%w: %s is signed by %s, and there is no public key of that kind", ErrUnverified, what, kind)
	}
	_, err := verify(have...)
	if errors.Is(err, signature.ErrNoMatchingKey) {
		return fmt.Errorf("%w: %s is signed by no %s key of those that are allowed", ErrUnverified, what, kind)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnverified, what, err)
	}
	return nil
}
