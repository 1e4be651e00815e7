package config

import v1 "kubevirt.io/api/core/v1"

// seccomp returns the profile on the node that launchers are to have; empty: the container runtime's.
func seccomp(s *v1.SeccompConfiguration) string {
	if s == nil || s.VirtualMachineInstanceProfile == nil || s.VirtualMachineInstanceProfile.CustomProfile == nil {
		return ""
	}
	p := s.VirtualMachineInstanceProfile.CustomProfile
	if p.LocalhostProfile == nil || p.RuntimeDefaultProfile {
		return ""
	}
	return *p.LocalhostProfile
}
