// Package receiver answers webhooks of Git servers: whoever knows a Bundle's token can ask it to look at its source at
// once, and nothing else. The others learn nothing: a Bundle that is not there, one that takes no requests and a wrong
// token have the same answer, after the same time.
package receiver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/kube/apply"
)

// Limits of what strangers may use.
const (
	// most is the longest body, in bytes.
	most = 4 << 20
	// atOnce is how many requests are worked on at a time, perSecond how many are begun in a second.
	atOnce, perSecond = 8, 20
	// lookup is the time to find the token; a refusal is answered when this much has gone by, whatever it was for.
	lookup = time.Second
)

// Manager owns the annotation that requests are.
const Manager = "virt-bundles-receiver"

// Path is where the requests for a Bundle go.
func Path(b *v1alpha1.Bundle) string { return "/hook/" + b.Namespace + "/" + b.Name }

// Receiver serves the requests.
type Receiver struct {
	// Bundles reads them; Write makes requests of them.
	Bundles client.Reader
	Write   client.Client
	// As returns a client with the rights of a Bundle's account, which reads the token.
	As func(b *v1alpha1.Bundle) (client.Client, error)
	// Annotation is the one that a request sets.
	Annotation string
	// Now is the clock that requests are dated with.
	Now func() time.Time
}

// Server returns what serves an address.
func (r *Receiver) Server(address string) *http.Server {
	mux, slots, pace := http.NewServeMux(), make(chan struct{}, atOnce), rate.NewLimiter(perSecond, perSecond)
	mux.HandleFunc("POST /hook/{namespace}/{name}", func(w http.ResponseWriter, q *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		if !pace.Allow() {
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		r.serve(w, q)
	})
	return &http.Server{
		Addr: address, Handler: mux, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: 30 * time.Second,
	}
}

func (r *Receiver) serve(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, most))
	if err != nil {
		http.Error(w, "the body can't be read, or is too large", http.StatusRequestEntityTooLarge)
		return
	}
	ctx, cancel := context.WithTimeout(q.Context(), lookup)
	defer cancel()
	b, token := r.find(ctx, client.ObjectKey{Namespace: q.PathValue("namespace"), Name: q.PathValue("name")})
	if b == nil || !signed(b.Spec.Receiver.Type, q.Header, body, token) {
		<-ctx.Done() // all refusals take the same time
		http.Error(w, "no such receiver, or a wrong signature", http.StatusUnauthorized)
		return
	}
	if err := r.request(q.Context(), b); err != nil {
		ctrl.LoggerFrom(q.Context()).Error(err, "taking a request")
		http.Error(w, "the request could not be written down", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// find returns a Bundle that takes requests, and its token; nil: there is none, or none that can be used.
func (r *Receiver) find(ctx context.Context, key client.ObjectKey) (*v1alpha1.Bundle, []byte) {
	b := &v1alpha1.Bundle{}
	if err := r.Bundles.Get(ctx, key, b); err != nil || b.Spec.Receiver == nil {
		return nil, nil
	}
	as, err := r.As(b)
	if err != nil {
		return nil, nil
	}
	token, err := Read(ctx, as, b)
	if err != nil {
		return nil, nil // the Bundle's condition says why
	}
	return b, token
}

// Read returns the token of a Bundle that has a receiver. An error says what would be right.
func Read(ctx context.Context, as client.Reader, b *v1alpha1.Bundle) ([]byte, error) {
	var s corev1.Secret
	key := client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.Receiver.SecretRef.Name}
	if err := as.Get(ctx, key, &s); err != nil {
		return nil, fmt.Errorf("spec.receiver.secretRef: reading Secret %s: %w", key, err)
	}
	token, err := Token(s.Data)
	if err != nil {
		return nil, fmt.Errorf("spec.receiver.secretRef: Secret %s: %w", key, err)
	}
	return token, nil
}

// request makes the Bundle look at its source. Each has its own time: one that came while the last was looked at is not lost.
func (r *Receiver) request(ctx context.Context, b *v1alpha1.Bundle) error {
	at := map[string]string{r.Annotation: r.Now().UTC().Format(time.RFC3339Nano)}
	a := apply.Applier{Client: r.Write, Manager: Manager}
	if err := a.Metadata(ctx, b, apply.Metadata{Annotations: at}); err != nil {
		return fmt.Errorf("asking Bundle %s/%s to look: %w", b.Namespace, b.Name, err)
	}
	return nil
}
