package receiver

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"
	"testing"

	"virtstack.io/virtstack/api/v1alpha1"
)

const (
	token = "0123456789abcdef"
	body  = `{"ref": "refs/heads/main"}`
)

func mac(algorithm func() hash.Hash, token string) string {
	m := hmac.New(algorithm, []byte(token))
	_, _ = m.Write([]byte(body))
	return hex.EncodeToString(m.Sum(nil))
}

func TestWhoKnowsTheToken(t *testing.T) {
	good := mac(sha256.New, token)
	for name, tc := range map[string]struct {
		kind          v1alpha1.ReceiverType
		header, value string
		want          bool
	}{
		"github":                   {v1alpha1.ReceiverGitHub, "X-Hub-Signature-256", "sha256=" + good, true},
		"github, upper case":       {v1alpha1.ReceiverGitHub, "X-Hub-Signature-256", "sha256=" + strings.ToUpper(good), true},
		"github, another token":    {v1alpha1.ReceiverGitHub, "X-Hub-Signature-256", "sha256=" + mac(sha256.New, "x"), false},
		"github, no token":         {v1alpha1.ReceiverGitHub, "X-Hub-Signature-256", "sha256=" + mac(sha256.New, ""), false},
		"github, weak":             {v1alpha1.ReceiverGitHub, "X-Hub-Signature", "sha1=" + mac(sha1.New, token), false},
		"github, no algorithm":     {v1alpha1.ReceiverGitHub, "X-Hub-Signature-256", good, false},
		"github, cut":              {v1alpha1.ReceiverGitHub, "X-Hub-Signature-256", "sha256=" + good[:62], false},
		"github, empty":            {v1alpha1.ReceiverGitHub, "X-Hub-Signature-256", "sha256=", false},
		"github by gitlab":         {v1alpha1.ReceiverGitHub, "X-Gitlab-Token", token, false},
		"gitlab":                   {v1alpha1.ReceiverGitLab, "X-Gitlab-Token", token, true},
		"gitlab, a part":           {v1alpha1.ReceiverGitLab, "X-Gitlab-Token", token[:15], false},
		"gitlab, nothing":          {v1alpha1.ReceiverGitLab, "X-Other", token, false},
		"gitlab by github":         {v1alpha1.ReceiverGitLab, "X-Hub-Signature-256", "sha256=" + good, false},
		"gitea":                    {v1alpha1.ReceiverGitea, "X-Gitea-Signature", good, true},
		"gitea, another":           {v1alpha1.ReceiverGitea, "X-Gitea-Signature", mac(sha256.New, "x"), false},
		"generic":                  {v1alpha1.ReceiverGeneric, "X-Signature", "sha256=" + good, true},
		"generic, 512":             {v1alpha1.ReceiverGeneric, "X-Signature", "sha512=" + mac(sha512.New, token), true},
		"generic, weak":            {v1alpha1.ReceiverGeneric, "X-Signature", "sha1=" + mac(sha1.New, token), false},
		"generic, wrong algorithm": {v1alpha1.ReceiverGeneric, "X-Signature", "sha512=" + good, false},
		"no kind":                  {"", "X-Signature", "sha256=" + good, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set(tc.header, tc.value)
			if got := signed(tc.kind, h, []byte(body), []byte(token)); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
			if signed(tc.kind, h, []byte(body+" "), []byte(token)) && tc.kind != v1alpha1.ReceiverGitLab {
				t.Error("the signature holds for another body")
			}
		})
	}
}

func TestAShortTokenIsNone(t *testing.T) {
	for _, data := range []map[string][]byte{nil, {"token": []byte("canary")}, {"password": []byte(token)}} {
		if got, err := Token(data); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "at least 16 bytes") {
			t.Errorf("%v: got %q, %v", data, got, err)
		}
	}
}

// Whatever a stranger sends is no signature, and ends nothing (threat G6).
func FuzzStrangers(f *testing.F) {
	f.Add("X-Hub-Signature-256", "sha256=00", []byte(body))
	f.Add("X-Signature", "sha512==\x00", []byte{})
	f.Fuzz(func(t *testing.T, header, value string, content []byte) {
		for _, kind := range []v1alpha1.ReceiverType{v1alpha1.ReceiverGitHub, v1alpha1.ReceiverGitLab, v1alpha1.ReceiverGitea, v1alpha1.ReceiverGeneric} {
			if signed(kind, http.Header{http.CanonicalHeaderKey(header): {value}}, content, []byte("canary, which no one sends")) {
				t.Errorf("%s: %s: %q is taken", kind, header, value)
			}
		}
	})
}
