package config

import (
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
)

// seccomp returns the profile that the administrator has chosen for launchers: a file on the nodes, or the container
// runtime's; nil: none.
func seccomp(s *v1.SeccompConfiguration) *k8sv1.SeccompProfile {
	if s == nil || s.VirtualMachineInstanceProfile == nil || s.VirtualMachineInstanceProfile.CustomProfile == nil {
		return nil
	}
	p := s.VirtualMachineInstanceProfile.CustomProfile
	switch {
	case p.RuntimeDefaultProfile:
		return &k8sv1.SeccompProfile{Type: k8sv1.SeccompProfileTypeRuntimeDefault}
	case p.LocalhostProfile != nil:
		return &k8sv1.SeccompProfile{Type: k8sv1.SeccompProfileTypeLocalhost, LocalhostProfile: p.LocalhostProfile}
	}
	return nil
}
