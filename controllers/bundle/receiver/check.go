package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strings"

	"virtstack.io/virtstack/api/v1alpha1"
)

// TokenKey is the key of the Secret.
const TokenKey = "token"

// shortest is the length of a token that nobody guesses, in bytes.
const shortest = 16

// Token returns the token of a receiver's Secret. An error says what would be right, and not what is there.
func Token(data map[string][]byte) ([]byte, error) {
	token := data[TokenKey]
	if len(token) < shortest {
		return nil, fmt.Errorf("key %s must hold at least %d bytes, and holds %d", TokenKey, shortest, len(token))
	}
	return token, nil
}

// signed tells whether who sent the request knows the token. Only what servers of the kind send is looked at.
func signed(kind v1alpha1.ReceiverType, h http.Header, body, token []byte) bool {
	switch kind {
	case v1alpha1.ReceiverGitHub:
		return signature(h.Get("X-Hub-Signature-256"), "sha256", body, token)
	case v1alpha1.ReceiverGitea:
		return signature("sha256="+h.Get("X-Gitea-Signature"), "sha256", body, token)
	case v1alpha1.ReceiverGeneric:
		return signature(h.Get("X-Signature"), "sha256", body, token) || signature(h.Get("X-Signature"), "sha512", body, token)
	case v1alpha1.ReceiverGitLab:
		got, want := sha256.Sum256([]byte(h.Get("X-Gitlab-Token"))), sha256.Sum256(token) // of one length
		return subtle.ConstantTimeCompare(got[:], want[:]) == 1
	}
	return false
}

var algorithms = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}

// signature checks <algorithm>=<hexadecimal digits>.
func signature(header, algorithm string, body, token []byte) bool {
	mac := hmac.New(algorithms[algorithm], token)
	_, _ = mac.Write(body) // a hash takes everything
	name, digits, _ := strings.Cut(header, "=")
	got, err := hex.DecodeString(digits)
	return hmac.Equal(got, mac.Sum(nil)) && err == nil && name == algorithm
}
