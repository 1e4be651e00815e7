package subresource

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	v1 "kubevirt.io/api/core/v1"
)

// maxBody is the most that the options of a verb may take, in bytes.
const maxBody = 64 << 10

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client is gone: there is nobody to tell
}

// writeError answers with a Status: the one that the error carries, or an internal error.
func writeError(w http.ResponseWriter, err error) {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		api = apierrors.NewInternalError(err)
	}
	status := api.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	writeJSON(w, int(status.Code), status)
}

// named gives the API server's answer the name that clients of this API expect: the singular resource.
func named(err error, resource, name string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(v1.Resource(resource), name)
	}
	return err
}

func notServed(r *http.Request) error {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, v1.Resource(""), "", "", 0, false)
	err.ErrStatus.Message = "the server does not serve " + r.Method + " " + r.URL.Path
	return err
}

// options is into for a verb that changes nothing which could come from Git.
func options(w http.ResponseWriter, r *http.Request, o any) error {
	if err := plain(r); err != nil {
		return err
	}
	return into(w, r, o)
}

// into decodes the body of a verb, JSON or YAML, into o; an empty one leaves it as it is.
func into(w http.ResponseWriter, r *http.Request, o any) error {
	raw, err := bodyOf(w, r, maxBody)
	if err != nil || len(raw) == 0 {
		return err
	}
	if err := yaml.Unmarshal(raw, o); err != nil {
		return apierrors.NewBadRequest("decoding the request's body: " + err.Error())
	}
	return nil
}

// bodyOf reads at most so many bytes.
func bodyOf(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return nil, apierrors.NewBadRequest("reading the request's body: " + err.Error())
	}
	return body, nil
}
