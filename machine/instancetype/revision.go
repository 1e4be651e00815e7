package instancetype

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"
	api "kubevirt.io/api/instancetype"
	"kubevirt.io/api/instancetype/v1beta1"
)

// ErrNotInferred is wrapped by what a volume that says nothing about an instancetype or preference gives.
var ErrNotInferred = errors.New("nothing to infer from")

// Object is an instancetype or preference as the API server has it.
type Object interface {
	metav1.Object
	runtime.Object
}

// Stored returns the ControllerRevision that keeps object, of the kind, for vm: owned by the VM, named by VM and object,
// its UID and generation, so that making it twice is making it once. The error is of an object that has no JSON.
func Stored(vm *v1.VirtualMachine, kind string, object Object) (*appsv1.ControllerRevision, error) {
	kept, ok := object.DeepCopyObject().(Object)
	if !ok {
		return nil, fmt.Errorf("%T is no instancetype or preference", object)
	}
	kept.SetManagedFields(nil)
	kept.GetObjectKind().SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(kind))
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("storing %s %s: %w", kind, object.GetName(), err)
	}
	generation := strconv.FormatInt(object.GetGeneration(), 10)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       vm.Namespace,
			Name:            revisionName(vm.Name, object),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vm, v1.VirtualMachineGroupVersionKind)},
			Labels: map[string]string{
				api.ControllerRevisionObjectGenerationLabel: generation,
				api.ControllerRevisionObjectKindLabel:       kind,
				api.ControllerRevisionObjectNameLabel:       label(object.GetName()),
				api.ControllerRevisionObjectUIDLabel:        string(object.GetUID()),
				api.ControllerRevisionObjectVersionLabel:    api.LatestVersion,
			},
		},
		Data: runtime.RawExtension{Raw: data},
	}, nil
}

// revisionName is <vm>-<object>-<version>-<uid>-<generation>, its front hashed where that is too long for a name.
func revisionName(vm string, object metav1.Object) string {
	tail := fmt.Sprintf("-%s-%s-%d", api.LatestVersion, object.GetUID(), object.GetGeneration())
	return shorten(vm+"-"+object.GetName(), 253-len(tail)) + tail
}

func label(name string) string { return shorten(name, 63) }

func shorten(name string, room int) string {
	if len(name) <= room {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:room-13] + "-" + hex.EncodeToString(sum[:6])
}

// Read sets in c what a revision stores. Its errors tell why the revision is none of an instancetype or preference of
// this version, or of the other of the two.
func (m Matcher) Read(c *Choice, revision *appsv1.ControllerRevision) error {
	var head metav1.TypeMeta
	if err := json.Unmarshal(revision.Data.Raw, &head); err != nil {
		return fmt.Errorf("reading ControllerRevision %s: %w", revision.Name, err)
	}
	if head.APIVersion != v1beta1.SchemeGroupVersion.String() {
		return fmt.Errorf("ControllerRevision %s holds apiVersion %q: must be %s", revision.Name, head.APIVersion, v1beta1.SchemeGroupVersion)
	}
	var err error
	switch {
	case !m.Preference && (head.Kind == Instancetype || head.Kind == ClusterInstancetype):
		object := &v1beta1.VirtualMachineInstancetype{}
		err = json.Unmarshal(revision.Data.Raw, object)
		c.Instancetype = &object.Spec
	case m.Preference && (head.Kind == Preference || head.Kind == ClusterPreference):
		object := &v1beta1.VirtualMachinePreference{}
		err = json.Unmarshal(revision.Data.Raw, object)
		c.Preference = &object.Spec
	default:
		return fmt.Errorf("ControllerRevision %s holds a %s: not what %s needs", revision.Name, head.Kind, m.Field())
	}
	if err != nil {
		return fmt.Errorf("reading ControllerRevision %s: %w", revision.Name, err)
	}
	return nil
}

// Annotation returns the key under which a VMI names what it was expanded by.
func (r Reference) Annotation() string {
	switch r.Kind {
	case Instancetype:
		return v1.InstancetypeAnnotation
	case ClusterInstancetype:
		return v1.ClusterInstancetypeAnnotation
	case Preference:
		return v1.PreferenceAnnotation
	}
	return v1.ClusterPreferenceAnnotation
}
