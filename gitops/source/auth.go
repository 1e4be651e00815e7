package source

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxcd/pkg/git"
	fluxhosts "github.com/fluxcd/pkg/ssh/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// The keys of credentials.
const (
	keyUsername   = "username"
	keyPassword   = "password"
	keyToken      = "bearerToken"
	keyIdentity   = "identity"
	keyKnownHosts = "known_hosts"
	keyCA         = "ca.crt"
	keyCAFile     = "caFile"
	keyCert       = "tls.crt"
	keyKey        = "tls.key"
)

// keys are credentials by key.
type keys map[string][]byte

func (k keys) has(name string) bool { return len(k[name]) > 0 }

func (k keys) misses(name, needs string) error {
	return fmt.Errorf("%w: key %s is not there: %s", ErrCredentials, name, needs)
}

// authOptions checks that the credentials are such as the URL needs. An error names the key, never its content.
func authOptions(u *url.URL, data map[string][]byte) (*git.AuthOptions, error) {
	k := keys(data)
	check := k.forHTTP
	if u.Scheme == "ssh" {
		check = k.forSSH
	}
	if err := check(u); err != nil {
		return nil, err
	}
	auth, err := git.NewAuthOptions(*u, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	return auth, nil
}

func (k keys) forSSH(*url.URL) error {
	const needs = "an ssh URL needs identity (a private key) and known_hosts (the server's host keys, as ssh-keyscan prints them)"
	for _, name := range []string{keyIdentity, keyKnownHosts} {
		if !k.has(name) {
			return k.misses(name, needs)
		}
	}
	if err := parseIdentity(k[keyIdentity], k[keyPassword]); err != nil {
		return err
	}
	if _, algorithms, err := fluxhosts.New(k[keyKnownHosts]); err != nil || len(algorithms) == 0 {
		return fmt.Errorf("%w: key %s holds no host keys: %s", ErrCredentials, keyKnownHosts, needs)
	}
	return nil
}

func parseIdentity(key, passphrase []byte) error {
	_, err := ssh.ParseRawPrivateKey(key)
	if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
		if len(passphrase) == 0 {
			return fmt.Errorf("%w: key identity is a private key with a passphrase, which has to be in key password", ErrCredentials)
		}
		if _, err = ssh.ParseRawPrivateKeyWithPassphrase(key, passphrase); err != nil {
			return fmt.Errorf("%w: key password does not open the private key in key identity", ErrCredentials)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: key identity holds no private key: it must be PEM, as ssh-keygen writes it", ErrCredentials)
	}
	return nil
}

func (k keys) forHTTP(u *url.URL) error {
	secret := k.has(keyUsername) || k.has(keyPassword) || k.has(keyToken)
	switch {
	case len(k) == 0:
		return nil
	case k.has(keyToken) && (k.has(keyUsername) || k.has(keyPassword)):
		return fmt.Errorf("%w: keys bearerToken and username, password exclude each other", ErrCredentials)
	case k.has(keyUsername) && !k.has(keyPassword):
		return k.misses(keyPassword, "it goes with username")
	case k.has(keyPassword) && !k.has(keyUsername):
		return k.misses(keyUsername, "it goes with password; with a token as the password most servers take any name")
	case !secret && !k.has(keyCA) && !k.has(keyCAFile) && !k.has(keyCert):
		return k.misses(keyUsername, "an "+u.Scheme+" URL needs username and password, or bearerToken, or ca.crt")
	case secret && u.Scheme == "http":
		return fmt.Errorf("%w: credentials are sent over https only, and the URL is http", ErrCredentials)
	}
	if _, err := k.tls(); err != nil {
		return fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	return nil
}

// tls returns what the keys say of certificates; nil: nothing.
func (k keys) tls() (*tls.Config, error) {
	name := keyCA
	if !k.has(name) {
		name = keyCAFile
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.has(name) {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(k[name]) {
			return nil, fmt.Errorf("key %s holds no certificate: it must be PEM", name)
		}
	}
	if k.has(keyCert) || k.has(keyKey) {
		pair, err := tls.X509KeyPair(k[keyCert], k[keyKey])
		if err != nil {
			return nil, errors.New("keys tls.crt and tls.key are no certificate with its private key, in PEM")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// refusedHost says what is wrong with the server's host key, nil if the error is of something else.
func refusedHost(err error, host string) error {
	var wrong *knownhosts.KeyError
	switch text := err.Error(); {
	case errors.As(err, &wrong) && len(wrong.Want) > 0, strings.Contains(text, "knownhosts: key mismatch"):
		return fmt.Errorf("the host key of %s is another one than known_hosts has: nothing was fetched", host)
	case errors.As(err, &wrong), strings.Contains(text, "knownhosts: key is unknown"), strings.Contains(text, "no common algorithm for host key"):
		return fmt.Errorf("the host key of %s is not in known_hosts: nothing was fetched; ssh-keyscan prints it, compare it with what the server's owner says", host)
	}
	return nil
}
