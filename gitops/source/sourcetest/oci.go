package sourcetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// FluxLayer is the media type of a layer that Flux pushes.
const FluxLayer = "application/vnd.cncf.flux.content.v1.tar+gzip"

// Registry is a registry over https.
type Registry struct {
	// Host has the port.
	Host string
	// CA is the certificate of the server.
	CA []byte

	t testing.TB
	s *httptest.Server
}

// ServeRegistry serves a registry to those whom allowed lets in, until the test ends; nil: to all.
func ServeRegistry(t testing.TB, allowed func(*http.Request) bool) *Registry {
	t.Helper()
	all := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if allowed != nil && !allowed(q) {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		all.ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &Registry{Host: strings.TrimPrefix(s.URL, "https://"), CA: ca, t: t, s: s}
}

// ServePlainRegistry serves a registry over plain http. What each request had as headers is kept; asked returns all so far.
func ServePlainRegistry(t testing.TB) (r *Registry, asked func() []http.Header) {
	t.Helper()
	all := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var mu sync.Mutex
	var headers []http.Header
	asked = func() []http.Header {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(headers)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		headers = append(headers, q.Header)
		mu.Unlock()
		all.ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	return &Registry{Host: strings.TrimPrefix(s.URL, "http://"), t: t, s: s}, asked
}

// Push makes an artifact with one layer and returns its digest.
func (r *Registry) Push(tagged, mediaType string, layer []byte, options ...remote.Option) string {
	r.t.Helper()
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(layer, types.MediaType(mediaType)))
	if err != nil {
		r.t.Fatal(err)
	}
	image = mutate.ConfigMediaType(image, "application/vnd.cncf.flux.config.v1+json")
	return r.push(tagged, image, options)
}

func (r *Registry) push(tagged string, image v1.Image, options []remote.Option) string {
	r.t.Helper()
	tag, err := name.NewTag(r.Host + "/" + tagged)
	if err == nil {
		err = remote.Write(tag, image, append(options, remote.WithTransport(r.s.Client().Transport))...)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		r.t.Fatal(err)
	}
	return digest.String()
}

// File is a regular file of an archive.
func File(name, content string) Entry {
	return Entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}, content}
}

// Link is a symbolic link of an archive.
func Link(name, target string) Entry {
	return Entry{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}, ""}
}

// Entry is one entry of an archive.
type Entry struct {
	Header  tar.Header
	Content string
}

// Archive makes a gzipped tar.
func Archive(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
