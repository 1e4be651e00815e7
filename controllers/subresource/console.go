package subresource

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "kubevirt.io/api/core/v1"
)

// console joins the client to the first serial port of a guest. A client that comes later takes it over: that, and
// the text that says so, is the launcher's.
func (s *Server) console(w http.ResponseWriter, r *http.Request, t Target) error {
	vmi, err := s.vmi(r.Context(), t)
	if err != nil {
		return err
	}
	if err := consoleRefusal(vmi); err != nil {
		return err
	}
	return s.stream(w, r, vmi, "console")
}

func consoleRefusal(vmi *v1.VirtualMachineInstance) error {
	if attach := vmi.Spec.Domain.Devices.AutoattachSerialConsole; attach != nil && !*attach {
		return apierrors.NewBadRequest("No serial consoles are present.")
	}
	if vmi.Status.Phase == v1.Failed {
		return apierrors.NewConflict(v1.Resource("virtualmachineinstance"), vmi.Name, errFailed)
	}
	if !vmi.IsRunning() {
		return apierrors.NewBadRequest("VMI is not running")
	}
	return nil
}
