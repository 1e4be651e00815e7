package subresource

import (
	"net/http"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/subresource/plan"
)

func (s *Server) start(w http.ResponseWriter, r *http.Request, t Target) error {
	o := v1.StartOptions{}
	if err := options(w, r, &o); err != nil {
		return err
	}
	err := s.apply(r.Context(), t, o.DryRun, func(seen plan.Seen) ([]plan.Action, error) { return plan.Start(seen, o) })
	if err == nil {
		accepted(w)
	}
	return err
}
