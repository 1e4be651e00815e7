package source_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"virtstack.io/virtstack/gitops/source"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

func artifactOf(r *sourcetest.Registry, ref source.OCIRef) source.OCI {
	o := source.OCI{URL: "oci://" + r.Host + "/team/vms", Ref: ref, Limits: source.DefaultLimits}
	if r.CA != nil {
		o.Certificates = credentials("ca.crt", string(r.CA))
	}
	return o
}

func TestArtifactsOfARegistry(t *testing.T) {
	r := sourcetest.ServeRegistry(t, nil)
	first := r.Push("team/vms:1.0.0", sourcetest.FluxLayer, sourcetest.Archive(t, sourcetest.File("vm.yaml", "first")))
	second := r.Push("team/vms:v1.10.0", "application/vnd.docker.image.rootfs.diff.tar.gzip", sourcetest.Archive(t, sourcetest.File("./vm.yaml", "second")))
	third := r.Push("team/vms:2.0.0", "application/x-team.tar+gzip", sourcetest.Archive(t, sourcetest.File("vm.yaml", "third")))
	for _, tc := range []struct {
		ref               source.OCIRef
		revision, content string
	}{
		{source.OCIRef{Tag: "1.0.0"}, "1.0.0@" + first, "first"},
		{source.OCIRef{SemVer: "1.x", Tag: "2.0.0"}, "v1.10.0@" + second, "second"},
		{source.OCIRef{Digest: third, SemVer: "1.x", Tag: "1.0.0"}, third, "third"},
	} {
		o := artifactOf(r, tc.ref)
		holds(t, o, tc.revision, tc.content)
		o.Known = tc.revision
		refuses(t, o, source.ErrUnchanged)
	}
	o := artifactOf(r, source.OCIRef{Tag: "none"})
	refuses(t, o, source.ErrRef, "tag none of oci://"+r.Host+"/team/vms")
	o.Ref = source.OCIRef{SemVer: ">=9"}
	refuses(t, o, source.ErrRef, "version >=9", "none of its 3 tags is in the range")
	o.Ref = source.OCIRef{SemVer: "canyon"}
	refuses(t, o, source.ErrRefused, "is no range of versions")
	o.Ref = source.OCIRef{Digest: "sha256:" + strings.Repeat("a", 64)}
	refuses(t, o, source.ErrRef, "digest sha256:aaa")
	o.Ref, o.MediaType = source.OCIRef{Tag: "2.0.0"}, sourcetest.FluxLayer
	refuses(t, o, source.ErrRefused, "no layer of media type "+sourcetest.FluxLayer, "application/x-team.tar+gzip")
	o.MediaType = "application/x-team.tar+gzip"
	holds(t, o, "2.0.0@"+third, "third")
	r.Push("team/vms:plain", "text/plain", []byte("x"))
	refuses(t, artifactOf(r, source.OCIRef{Tag: "plain"}), source.ErrRefused, "media type that is a gzipped tar", "text/plain")
}

func pullSecret(host, user, password string) map[string][]byte {
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return credentials(".dockerconfigjson", `{"auths": {"`+host+`": {"auth": "`+auth+`"}}}`)
}

func TestLoginsOfRegistries(t *testing.T) {
	r := sourcetest.ServeRegistry(t, func(q *http.Request) bool {
		user, password, _ := q.BasicAuth()
		return user == "canary-user" && password == "canary-password"
	})
	archive := sourcetest.Archive(t, sourcetest.File("vm.yaml", "x"))
	digest := r.Push("team/vms:a", sourcetest.FluxLayer, archive, remote.WithAuth(&authn.Basic{Username: "canary-user", Password: "canary-password"}))
	o := artifactOf(r, source.OCIRef{Tag: "a"})
	refuses(t, o, nil, "401 Unauthorized")
	for _, login := range []string{r.Host, "https://" + r.Host, "https://" + r.Host + "/v2/", r.Host + "/team"} {
		o.Credentials = pullSecret(login, "canary-user", "canary-password")
		holds(t, o, "a@"+digest, "x")
	}
	o.Credentials = pullSecret(r.Host, "canary-user", "canary-wrong")
	refuses(t, o, nil, "401 Unauthorized")
	for _, login := range []string{"other.test", r.Host + "/te", r.Host + "/team/vms/more"} {
		o.Credentials = pullSecret(login, "canary-user", "canary-password")
		refuses(t, o, source.ErrCredentials, "no login for registry "+r.Host, login)
	}
	o.Credentials = credentials("username", "canary-user")
	refuses(t, o, source.ErrCredentials, "key .dockerconfigjson is not there")
	o.Credentials = credentials(".dockerconfigjson", "canary")
	refuses(t, o, source.ErrCredentials, "key .dockerconfigjson holds no configuration")
	o = artifactOf(r, source.OCIRef{Tag: "a"})
	o.Certificates = nil
	refuses(t, o, nil, "certificate signed by unknown authority")
	o.Certificates = credentials("ca", "canary")
	refuses(t, o, source.ErrCertificates, "key ca.crt is not there")
	o.Certificates = credentials("ca.crt", "canary")
	refuses(t, o, source.ErrCertificates, "key ca.crt holds no certificate")
}

// Nothing is fetched over plain http unless it is allowed, and no login is ever sent over it.
func TestARegistryInClear(t *testing.T) {
	r, asked := sourcetest.ServePlainRegistry(t)
	archive := sourcetest.Archive(t, sourcetest.File("vm.yaml", "x"))
	digest := r.Push("team/vms:a", sourcetest.FluxLayer, archive)
	before := len(asked())
	o := artifactOf(r, source.OCIRef{Tag: "a"})
	refuses(t, o, nil, "insecure: true")
	o.Credentials, o.Insecure = pullSecret(r.Host, "canary-user", "canary-password"), true
	refuses(t, o, nil, "over which no credentials are sent")
	for _, header := range asked()[before:] {
		t.Errorf("it was asked, with %v", header)
	}
	o.Credentials = nil
	holds(t, o, "a@"+digest, "x")
}

// A registry, or what stands between, that gives other bytes for a digest is believed in nothing: not in the manifest, not
// in the layer (threats G3, G9).
func TestARegistryThatLies(t *testing.T) {
	r, _ := sourcetest.ServePlainRegistry(t)
	archive := sourcetest.Archive(t, sourcetest.File("vm.yaml", "x"))
	digest := r.Push("team/vms:a", sourcetest.FluxLayer, archive)
	for name, of := range map[string]string{"layer": "/blobs/", "manifest": "/manifests/"} {
		t.Run(name, func(t *testing.T) {
			through := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: r.Host})
			through.ModifyResponse = func(a *http.Response) error {
				if !strings.Contains(a.Request.URL.Path, of) || a.Request.Method != http.MethodGet {
					return nil
				}
				raw, err := io.ReadAll(a.Body)
				raw = append(bytes.TrimSuffix(raw, []byte("}")), []byte(" }")...)
				a.Body, a.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
				a.Header.Set("Content-Length", strconv.Itoa(len(raw)))
				return err
			}
			s := httptest.NewServer(through)
			t.Cleanup(s.Close)
			o := source.OCI{URL: "oci://" + strings.TrimPrefix(s.URL, "http://") + "/team/vms", Ref: source.OCIRef{Digest: digest}, Insecure: true, Limits: source.DefaultLimits}
			refuses(t, o, nil, "sha256:")
		})
	}
}

func TestALayerIsBounded(t *testing.T) {
	r := sourcetest.ServeRegistry(t, nil)
	digest := r.Push("team/vms:a", sourcetest.FluxLayer, sourcetest.Archive(t, sourcetest.File("big", strings.Repeat("x", 1<<20))))
	o := artifactOf(r, source.OCIRef{Tag: "a"})
	o.Limits.Bytes = 1 << 19
	refuses(t, o, source.ErrRefused, "more than 524288 bytes")
	if _, err := o.Fetch(t.Context()); !strings.Contains(err.Error(), "tag a") || strings.Count(err.Error(), r.Host) != 1 {
		t.Errorf("got %v of %s", err, digest)
	}
	o.Limits.Bytes = 100
	refuses(t, o, source.ErrRefused, "more than 100 bytes")
}

// Lists of tags and manifests are kept in memory: a registry that doesn't end with them is refused.
func TestARegistryThatTalksTooMuch(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/tags/list") {
			_, _ = io.WriteString(w, `{"name": "team/vms", "tags": ["`+strings.Repeat(`1.0.0", "`, 2<<20)+`"]}`)
		}
	}))
	t.Cleanup(s.Close)
	o := source.OCI{URL: "oci://" + strings.TrimPrefix(s.URL, "http://") + "/team/vms", Ref: source.OCIRef{SemVer: "1.x"}, Insecure: true, Limits: source.DefaultLimits}
	refuses(t, o, source.ErrRefused, "more than 8388608 bytes")
}
