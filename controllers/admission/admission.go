// Package admission serves the webhooks: it decodes, asks machine/validate and answers. It changes no object but a new
// VirtualMachineInstance, which is filled with its defaults: what Git owns stays what was committed.
package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/machine/config"
)

const (
	// InstancesPath is where VirtualMachineInstances are reviewed.
	InstancesPath = "/virtualmachineinstances-validate"
	// FillPath is where new VirtualMachineInstances get their defaults.
	FillPath = "/virtualmachineinstances-mutate"
	// ObjectsPath is where all other kinds are reviewed, each by itself.
	ObjectsPath = "/objects-validate"

	// maxReview is the most bytes of a review. The API server takes requests of 3 MiB; a review has the new
	// object and the old one.
	maxReview = 8 << 20
)

// reply answers one request. An error means that what it takes to answer could not be asked.
type reply func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

// review answers one request. An error means that the request could not be read.
type review func(*admissionv1.AdmissionRequest, config.Config) (*admissionv1.AdmissionResponse, error)

// Handler serves the webhooks; anything else is not found. TLS and timeouts are the server's.
func Handler(c Cluster) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+InstancesPath, serve(c.reviewed(instance)))
	mux.Handle("POST "+ObjectsPath, serve(c.reviewed(object)))
	mux.Handle("POST "+FillPath, serve(c.filled))
	return mux
}

func serve(reply reply) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			http.Error(w, fmt.Sprintf("the review must have at most %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "reading the review: "+err.Error(), http.StatusBadRequest)
			return
		}
		asked := admissionv1.AdmissionReview{}
		if err := json.Unmarshal(body, &asked); err != nil {
			http.Error(w, "reading the review: "+err.Error(), http.StatusBadRequest)
			return
		}
		if asked.Request == nil {
			http.Error(w, "the review must have a request", http.StatusBadRequest)
			return
		}
		response, err := reply(r.Context(), asked.Request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		response.UID = asked.Request.UID
		write(w, admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
			Response: response,
		})
	})
}

// reviewed answers with a review.
func (c Cluster) reviewed(byItself review) reply {
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		return c.review(ctx, r, byItself)
	}
}

// filled answers with defaults.
func (c Cluster) filled(ctx context.Context, r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	current, err := c.Configuration(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return fill(r, current)
}

// review answers a request: by the object itself first, then by what there is beside it. The error says what couldn't
// be asked.
func (c Cluster) review(ctx context.Context, r *admissionv1.AdmissionRequest, byItself review) (*admissionv1.AdmissionResponse, error) {
	current, err := c.Configuration(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	response, err := byItself(r, current)
	if err != nil {
		return unreadable(err), nil
	}
	if !response.Allowed {
		return response, nil
	}
	errs, err := readable(ctx, r, c.May)
	if err != nil {
		return nil, err
	}
	if len(errs) == 0 {
		errs, err = c.beside(ctx, r, current)
	}
	return answer(r, errs, response.Warnings...), err
}

func write(w http.ResponseWriter, answer admissionv1.AdmissionReview) {
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, "writing the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the API server is gone: nobody is left to tell
}
