package validate

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// seccomp wants one profile for launchers, as Pods may name it.
func seccomp(at *field.Path, s *v1.SeccompConfiguration) field.ErrorList {
	if s == nil || s.VirtualMachineInstanceProfile == nil || s.VirtualMachineInstanceProfile.CustomProfile == nil {
		return nil
	}
	at = at.Child("virtualMachineInstanceProfile", "customProfile")
	profile := *s.VirtualMachineInstanceProfile.CustomProfile
	switch {
	case profile.LocalhostProfile != nil && profile.RuntimeDefaultProfile:
		return tooMany(at, []string{"localhostProfile", "runtimeDefaultProfile"})
	case profile.LocalhostProfile == nil && !profile.RuntimeDefaultProfile:
		return field.ErrorList{field.Required(at, "must have one of localhostProfile, runtimeDefaultProfile")}
	}
	if file := profile.LocalhostProfile; file != nil && (*file == "" || path.Clean(*file) != *file || path.IsAbs(*file) || strings.HasPrefix(*file, "..")) {
		return field.ErrorList{field.Invalid(at.Child("localhostProfile"), short(*file),
			"must be a path below the kubelet's directory of seccomp profiles, such as profiles/virtstack.json")}
	}
	return nil
}
