package stream

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"virtstack.io/virtstack/nodeagent/link"
)

// Verb asks the launcher in a Pod for something and returns when it has been asked for.
type Verb func(ctx context.Context, pod types.UID) error

// Verbs are those of launchers that are listened to.
func Verbs(launchers *link.Launchers) map[string]Verb {
	by := func(ask func(*link.Link, context.Context) error) Verb {
		return func(ctx context.Context, pod types.UID) error {
			to, _ := launchers.Link(pod)
			if to == nil {
				return errors.New("its launcher has not been heard of yet")
			}
			if err := ask(to, ctx); err != nil {
				return errors.New(link.Reason(err))
			}
			return nil
		}
	}
	return map[string]Verb{"pause": by((*link.Link).Pause), "unpause": by((*link.Link).Unpause)}
}

// verb answers 202 once the launcher has done what it was asked for.
func (s *Server) verb(w http.ResponseWriter, r *http.Request, ask Verb) {
	pod, err := s.launcher(r.Context(), target(r))
	if err == nil {
		err = ask(r.Context(), pod)
	}
	if err != nil {
		answer(w, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}
