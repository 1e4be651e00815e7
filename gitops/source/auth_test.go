package source_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"virtstack.io/virtstack/gitops/source"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

// holds fails unless a file of what is fetched has the content.
func holds(t *testing.T, s source.Source, revision, content string) {
	t.Helper()
	c, err := s.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := fs.ReadFile(c.Files, "vm.yaml")
	if err != nil || string(got) != content || c.Revision != revision {
		t.Errorf("got %q of %s, %v, want %q of %s", got, c.Revision, err, content, revision)
	}
}

// refuses fails unless fetching fails with the error, a text with all parts, and no canary in it.
func refuses(t *testing.T, s source.Source, want error, parts ...string) {
	t.Helper()
	c, err := s.Fetch(t.Context())
	if err == nil {
		c.Close()
		t.Fatal("it was fetched")
	}
	if want != nil && !errors.Is(err, want) || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want %v, and no canary", err, want)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("got %v, want %q in it", err, p)
		}
	}
}

func credentials(pairs ...string) map[string][]byte {
	m := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = []byte(pairs[i+1])
	}
	return m
}

func TestCredentialsOverHTTPS(t *testing.T) {
	basic := sourcetest.ServeTLS(t, func(q *http.Request) bool {
		user, password, _ := q.BasicAuth()
		return user == "canary-user" && password == "canary-password"
	})
	bearer := sourcetest.ServeTLS(t, func(q *http.Request) bool { return q.Header.Get("Authorization") == "Bearer canary-token" })
	for _, r := range []*sourcetest.Repository{basic, bearer} {
		hash := r.Commit("vm.yaml", "x")
		good := credentials("username", "canary-user", "password", "canary-password", "ca.crt", string(r.CA))
		if r == bearer {
			good = credentials("bearerToken", "canary-token", "ca.crt", string(r.CA))
		}
		g := of(r, source.Ref{Branch: "main"})
		g.Credentials = good
		holds(t, g, "main@sha1:"+hash, "x")
		g.Credentials = credentials("username", "canary", "password", "canary", "ca.crt", string(r.CA))
		refuses(t, g, nil, r.URL, "authentication required")
		delete(good, "ca.crt")
		g.Credentials = good
		refuses(t, g, nil, r.URL, "certificate signed by unknown authority")
	}
}

func TestSSH(t *testing.T) {
	r, key := sourcetest.Serve(t), sourcetest.NewKey(t)
	hash := r.Commit("vm.yaml", "x")
	url, hosts := r.SSH(key)
	good := credentials("identity", string(key.Private), "known_hosts", string(hosts))
	for _, ref := range []source.Ref{{Branch: "main"}, {Name: "refs/heads/main"}, {Commit: hash}} {
		want := map[bool]string{true: "main@sha1:" + hash, false: "sha1:" + hash}[ref.Branch != ""]
		if ref.Name != "" {
			want = "refs/heads/main@sha1:" + hash
		}
		g := source.Git{URL: url, Ref: ref, Limits: source.DefaultLimits, Credentials: good}
		holds(t, g, want, "x")
		g.Known = want
		refuses(t, g, source.ErrUnchanged)
	}
	g := source.Git{URL: url, Ref: source.Ref{Branch: "main"}, Limits: source.DefaultLimits}
	_, others := r.SSH(key)
	g.Credentials = credentials("identity", string(key.Private), "known_hosts", string(others))
	refuses(t, g, nil, url, "is not in known_hosts", "nothing was fetched")
	name, _, _ := strings.Cut(string(hosts), " ")
	g.Credentials = credentials("identity", string(key.Private), "known_hosts", name+" "+string(sourcetest.NewKey(t).Public))
	refuses(t, g, nil, url, "is another one than known_hosts has", "nothing was fetched")
	g.Credentials = credentials("identity", string(sourcetest.NewKey(t).Private), "known_hosts", string(hosts))
	refuses(t, g, nil, url, "unable to authenticate")
	g.Credentials, g.Ref = good, source.Ref{Branch: "none"}
	refuses(t, g, source.ErrRef, url, "branch none")
}

// A server that accepts and says nothing holds nobody longer than the Bundle's timeout.
func TestASilentServerOfSSH(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	key := sourcetest.NewKey(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	g := source.Git{
		URL: "ssh://git@" + l.Addr().String() + "/r.git", Ref: source.Ref{Branch: "main"}, Limits: source.DefaultLimits,
		Credentials: credentials("identity", string(key.Private), "known_hosts", "example.test "+string(key.Public)),
	}
	if _, err := g.Fetch(ctx); err == nil {
		t.Error("fetched from a server that doesn't answer")
	}
}

func TestTheShapeOfCredentials(t *testing.T) {
	key := sourcetest.NewKey(t)
	identity, hosts := string(key.Private), "example.test "+string(key.Public)
	for name, tc := range map[string]struct {
		url  string
		data map[string][]byte
		want string
	}{
		"ssh without a Secret":   {"ssh://g.invalid/r", nil, "key identity is not there: an ssh URL needs identity"},
		"ssh with a password":    {"ssh://g.invalid/r", credentials("username", "canary", "password", "canary"), "key identity is not there"},
		"ssh without hosts":      {"ssh://g.invalid/r", credentials("identity", identity), "key known_hosts is not there"},
		"hosts that are none":    {"ssh://g.invalid/r", credentials("identity", identity, "known_hosts", "canary"), "key known_hosts holds no host keys"},
		"an identity that is no": {"ssh://g.invalid/r", credentials("identity", "canary", "known_hosts", hosts), "key identity holds no private key"},
		"https with ssh's":       {"https://g.invalid/r", credentials("identity", identity, "known_hosts", hosts), "key username is not there: an https URL needs username and password, or bearerToken"},
		"a name alone":           {"https://g.invalid/r", credentials("username", "canary"), "key password is not there"},
		"a password alone":       {"https://g.invalid/r", credentials("password", "canary"), "key username is not there"},
		"both":                   {"https://g.invalid/r", credentials("username", "canary", "password", "canary", "bearerToken", "canary"), "exclude each other"},
		"no certificate":         {"https://g.invalid/r", credentials("ca.crt", "canary"), "key ca.crt holds no certificate"},
		"half a pair":            {"https://g.invalid/r", credentials("tls.crt", "canary"), "keys tls.crt and tls.key are no certificate"},
		"in clear":               {"http://g.invalid/r", credentials("bearerToken", "canary"), "sent over https only"},
	} {
		t.Run(name, func(t *testing.T) {
			refuses(t, source.Git{URL: tc.url, Ref: source.Ref{Branch: "main"}, Credentials: tc.data}, source.ErrCredentials, tc.want)
		})
	}
}

// The order is Flux's: commit, name, semver, tag, branch.
func TestWhichRefCounts(t *testing.T) {
	r := sourcetest.Serve(t)
	first := r.Commit("vm.yaml", "first")
	r.Git("tag", "v1.0.0")
	second := r.Commit("vm.yaml", "second")
	r.Git("tag", "old")
	r.Git("update-ref", "refs/pull/7/head", second)
	third := r.Commit("vm.yaml", "third")
	all := source.Ref{Commit: first, Branch: "main", Name: "refs/pull/7/head", SemVer: "1.x", Tag: "old"}
	holds(t, of(r, all), "sha1:"+first, "first")
	all.Commit = ""
	holds(t, of(r, all), "refs/pull/7/head@sha1:"+second, "second")
	all.Name = ""
	holds(t, of(r, all), "v1.0.0@sha1:"+first, "first")
	all.SemVer = ""
	holds(t, of(r, all), "old@sha1:"+second, "second")
	all.Tag = ""
	holds(t, of(r, all), "main@sha1:"+third, "third")
	r.Git("branch", "side", first)
	refuses(t, of(r, source.Ref{Commit: third, Branch: "side"}), source.ErrRef, "commit "+third)
	refuses(t, of(r, source.Ref{Name: "refs/pull/8/head"}), source.ErrRef, "ref refs/pull/8/head")
}
