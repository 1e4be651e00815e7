package subresource

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"virtstack.io/virtstack/machine/override"
)

// asking reads what a request asks for in place of a commit, until some time after now; nil: nothing.
type asking func(r *http.Request, now time.Time) (*override.Override, error)

// noOverride refuses one.
func noOverride(r *http.Request, _ time.Time) (*override.Override, error) { return nil, plain(r) }

// plain refuses a request for an override of a verb that can't be one.
func plain(r *http.Request) error {
	if r.URL.Query().Has("override") {
		return apierrors.NewBadRequest("override: Forbidden: only start and stop can override what Git says: leave it out")
	}
	return nil
}

// overrideOf reads the query parameters override, for and reason.
func overrideOf(r *http.Request, now time.Time) (*override.Override, error) {
	q := r.URL.Query()
	on, err := switchedOn(q)
	if err != nil {
		return nil, err
	}
	if !on {
		for _, name := range []string{"for", "reason"} {
			if q.Has(name) {
				return nil, apierrors.NewBadRequest(name + ": Forbidden: it goes with override=true")
			}
		}
		return nil, nil
	}
	lasts, err := time.ParseDuration(q.Get("for"))
	if err != nil || lasts < override.Shortest || lasts > override.Longest {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("for: Invalid value: %.100q: must be how long the override holds, such as 30m or 2h, at most %s", q.Get("for"), override.Longest))
	}
	reason := strings.TrimSpace(q.Get("reason"))
	if n := utf8.RuneCountInString(reason); n == 0 || n > override.MaxReason || strings.ContainsFunc(reason, unicode.IsControl) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("reason: Invalid value: %.100q: must say why, in one line of at most %d characters", reason, override.MaxReason))
	}
	return &override.Override{Until: now.Add(lasts), Reason: reason, By: userOf(r.Context())}, nil
}

func switchedOn(q url.Values) (bool, error) {
	if !q.Has("override") {
		return false, nil
	}
	on, err := strconv.ParseBool(q.Get("override"))
	if err != nil {
		return false, apierrors.NewBadRequest(fmt.Sprintf("override: Invalid value: %.100q: must be true or false", q.Get("override")))
	}
	return on, nil
}
