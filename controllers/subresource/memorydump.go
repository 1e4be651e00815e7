package subresource

import (
	"net/http"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/yaml"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/subresource/plan"
)

// memoryDump asks for a dump of a guest's memory; 202 says that the VM's status has the request.
func (s *Server) memoryDump(w http.ResponseWriter, r *http.Request, t Target) error {
	if err := plain(r); err != nil {
		return err
	}
	body, err := bodyOf(w, r, maxBody)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return apierrors.NewBadRequest("the request's body: Required value: must be a VirtualMachineMemoryDumpRequest, such as {\"claimName\": \"dumps\"}")
	}
	var o v1.VirtualMachineMemoryDumpRequest
	if err := yaml.Unmarshal(body, &o); err != nil {
		return apierrors.NewBadRequest("decoding the request's body: " + err.Error())
	}
	err = s.apply(r.Context(), t, nil, func(seen plan.Seen) ([]plan.Action, error) {
		name, err := plan.DumpClaim(seen, o.ClaimName)
		if err != nil {
			return nil, err
		}
		claim := &k8sv1.PersistentVolumeClaim{}
		if err := s.Kube.Get(r.Context(), client.ObjectKey{Namespace: t.Namespace, Name: name}, claim); err != nil {
			return nil, named(err, "persistentvolumeclaim", name)
		}
		return plan.Dump(seen, claim)
	})
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
	}
	return err
}

// removeMemoryDump ends the association of a VM's memory dumps with their claim.
func (s *Server) removeMemoryDump(w http.ResponseWriter, r *http.Request, t Target) error {
	if err := plain(r); err != nil {
		return err
	}
	err := s.apply(r.Context(), t, nil, plan.RemoveDump)
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
	}
	return err
}
