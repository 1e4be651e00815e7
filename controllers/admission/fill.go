package admission

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kjson "k8s.io/apimachinery/pkg/util/json"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
)

// fill answers a new VirtualMachineInstance with what its spec leaves open, so that it keeps what it was started with
// whatever the cluster's defaults become. Nothing that is there is spelled anew. What is wrong with it is for the reviews
// that come after.
func fill(r *admissionv1.AdmissionRequest, c config.Config) (*admissionv1.AdmissionResponse, error) {
	given := &v1.VirtualMachineInstance{}
	if err := decode(r.Object, given); err != nil || r.Operation != admissionv1.Create {
		return allowed(), nil
	}
	if given.Namespace == "" {
		given.Namespace = r.Namespace
	}
	filled := defaults.Instance(given, c)
	if equality.Semantic.DeepEqual(given.Spec, filled.Spec) {
		return allowed(), nil
	}
	spec, err := added(r.Object.Raw, given.Spec, filled.Spec)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec", "value": spec}})
	if err != nil {
		return nil, fmt.Errorf("writing the defaults: %w", err)
	}
	answer, kind := allowed(), admissionv1.PatchTypeJSONPatch
	answer.Patch, answer.PatchType = patch, &kind
	return answer, nil
}

// added returns the spec of an object in JSON with what after has and before, which was read from it, hasn't.
func added(object []byte, before, after v1.VirtualMachineInstanceSpec) (any, error) {
	var whole map[string]any
	if err := kjson.Unmarshal(object, &whole); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	var trees [2]any
	for i, spec := range []v1.VirtualMachineInstanceSpec{before, after} {
		raw, err := json.Marshal(spec)
		if err == nil {
			err = kjson.Unmarshal(raw, &trees[i])
		}
		if err != nil {
			return nil, fmt.Errorf("comparing the spec with its defaults: %w", err)
		}
	}
	return lay(whole["spec"], trees[0], trees[1]), nil
}

// lay puts what is in after and not in before over a value, from which before was read.
func lay(value, before, after any) any {
	if equality.Semantic.DeepEqual(before, after) {
		return value
	}
	switch after := after.(type) {
	case map[string]any:
		old, _ := value.(map[string]any)
		was, _ := before.(map[string]any)
		out := map[string]any{}
		for key, kept := range old {
			out[key] = kept
		}
		for key, now := range after {
			if laid := lay(old[key], was[key], now); laid != nil {
				out[key] = laid
			}
		}
		return out
	case []any:
		old, _ := value.([]any)
		was, _ := before.([]any)
		out := make([]any, len(after))
		for i, now := range after {
			out[i] = now
			if i < len(old) && i < len(was) {
				out[i] = lay(old[i], was[i], now)
			}
		}
		return out
	}
	return after
}
