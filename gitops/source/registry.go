package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// keyDocker is the key of a pull secret.
const keyDocker = ".dockerconfigjson"

// talk is how much a registry may say beside layers, in bytes: lists of tags, manifests and tokens are kept in memory.
const talk = 8 << 20

// options are how a registry is spoken to.
func (o OCI) options(ctx context.Context, of name.Repository, left *budget) ([]remote.Option, error) {
	login, err := o.login(of)
	if err != nil {
		return nil, err
	}
	if o.Certificates != nil && !keys(o.Certificates).has(keyCA) && !keys(o.Certificates).has(keyCert) {
		return nil, fmt.Errorf("%w: key %s is not there: it must hold the certificate of the registry's authority, in PEM", ErrCertificates, keyCA)
	}
	tls, err := keys(o.Certificates).tls()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCertificates, err)
	}
	wire := http.DefaultTransport.(*http.Transport).Clone() // of this fetch: its connections end with it
	context.AfterFunc(ctx, wire.CloseIdleConnections)
	wire.TLSClientConfig = tls
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuth(login), remote.WithUserAgent("virt-bundles"), remote.WithJobs(1),
		remote.WithTransport(careful{wire, left, &budget{limits: Limits{Bytes: talk}}, o.Insecure, o.Credentials != nil}),
	}, nil
}

// login returns what the pull secret has for the registry.
func (o OCI) login(of name.Repository) (authn.Authenticator, error) {
	if o.Credentials == nil {
		return authn.Anonymous, nil
	}
	if !keys(o.Credentials).has(keyDocker) {
		return nil, keys(o.Credentials).misses(keyDocker, "a pull secret has it (kubectl create secret docker-registry)")
	}
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(o.Credentials[keyDocker], &config); err != nil {
		return nil, fmt.Errorf("%w: key %s holds no configuration of docker", ErrCredentials, keyDocker)
	}
	best, found := "", false
	for host := range config.Auths {
		if covers(host, of) && (!found || len(host) > len(best)) {
			best, found = host, true
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: key %s has no login for registry %s: it has those for %q", ErrCredentials, keyDocker, of.RegistryStr(), slices.Sorted(maps.Keys(config.Auths)))
	}
	return authn.FromConfig(config.Auths[best]), nil
}

// covers tells whether a login is for this repository: the name of the registry, or of it and the start of the path.
func covers(login string, of name.Repository) bool {
	_, host, ok := strings.Cut(login, "://")
	if !ok {
		host = login
	}
	host = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(host, "/"), "/v1"), "/v2")
	full := of.RegistryStr() + "/" + of.RepositoryStr()
	return full == host || strings.HasPrefix(full, host+"/")
}

// careful counts what servers send, and speaks plain http only where it is allowed, and never with credentials.
type careful struct {
	next               http.RoundTripper
	layers, talk       *budget
	insecure, loggedIn bool
}

// RoundTrip is that of http.RoundTripper.
func (c careful) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.URL.Scheme != "https" && !c.insecure {
		return nil, fmt.Errorf("%s speaks plain http, which is used only with insecure: true", q.URL.Host)
	}
	if q.URL.Scheme != "https" && c.loggedIn {
		return nil, fmt.Errorf("%s speaks plain http, over which no credentials are sent", q.URL.Host)
	}
	answer, err := c.next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	left := c.talk
	if strings.Contains(begun(q).URL.Path, "/blobs/") {
		left = c.layers
	}
	answer.Body = boundedBody{answer.Body, left}
	return answer, nil
}

// begun returns the request that was redirected until it became this one.
func begun(q *http.Request) *http.Request {
	for q.Response != nil && q.Response.Request != nil {
		q = q.Response.Request
	}
	return q
}

type boundedBody struct {
	io.ReadCloser
	left *budget
}

func (b boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if over := b.left.write(n); over != nil {
		return 0, over
	}
	return n, err
}
