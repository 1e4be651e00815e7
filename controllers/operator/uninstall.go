package operator

import (
	"context"
	"encoding/json"
	"net/http"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"virtstack.io/virtstack/controllers/operator/plan"
)

// uninstallPath is where the API server asks whether a KubeVirt may be deleted.
const uninstallPath = "/kubevirts-validate-delete"

// uninstall refuses to delete a KubeVirt that has workloads: a deletion that only its finalizer holds up can't be
// taken back.
type uninstall struct{ live client.Reader }

// Handle answers a review of a DELETE.
func (u uninstall) Handle(ctx context.Context, req admission.Request) admission.Response {
	kv := &v1.KubeVirt{}
	if err := json.Unmarshal(req.OldObject.Raw, kv); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	w, err := workloads(ctx, u.live)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if why := plan.Blocked(kv, w); why != "" {
		return admission.Denied("KubeVirt " + kv.Namespace + "/" + kv.Name + " can't be deleted: " + why)
	}
	return admission.Allowed("")
}
