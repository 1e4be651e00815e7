// Package podspec renders a VMI's launcher Pod. It is pure: the same VMI, configuration and image give the same Pod.
// Names, labels and what others rely on are KubeVirt's contract; paths and volumes are between podspec and the launcher
// (api/guest/v1).
package podspec

import (
	"strconv"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/size"
)

// extraGrace is what a launcher Pod may take beyond its guest's grace period, in seconds: to see the guest destroyed
// and to close its disks.
const extraGrace = 30

// launcher is the launcher's program in its image.
const launcher = "/usr/bin/virt-launcher"

// Claims tells of each claim that a VMI's volumes read whether it is a raw device, by the claim's name.
type Claims map[string]bool

// Render returns the launcher Pod of a VMI; image is the launcher's. A VMI that asks for what can't be rendered gives
// an *UnsupportedError.
func Render(vmi *v1.VirtualMachineInstance, cfg config.Config, image string, claims Claims) (*k8sv1.Pod, error) {
	vmi = defaults.Instance(vmi, cfg)
	if err := supported(vmi); err != nil {
		return nil, err
	}
	for _, check := range []func(*v1.VirtualMachineInstance, config.Config) error{supportedHostDisks, supportedMetrics, supportedNUMA} {
		if err := check(vmi, cfg); err != nil {
			return nil, err
		}
	}
	if err := supportedDevices(vmi, cfg, claims); err != nil {
		return nil, err
	}
	pod := &k8sv1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            names.LauncherPod(vmi.Name, vmi.UID),
			Namespace:       vmi.Namespace,
			Labels:          Labels(vmi),
			Annotations:     Annotations(vmi),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vmi, v1.VirtualMachineInstanceGroupVersionKind)},
		},
		Spec: spec(vmi, cfg),
	}
	pod.Spec.Containers = []k8sv1.Container{compute(vmi, cfg, image)}
	addVolumes(&pod.Spec, vmi, claims)
	return pod, nil
}

// Labels returns those of a VMI's launcher Pod.
func Labels(vmi *v1.VirtualMachineInstance) map[string]string {
	labels := names.Untracked(vmi.Labels)
	labels[v1.AppLabel] = names.LauncherApp
	labels[v1.CreatedByLabel] = string(vmi.UID)
	labels[v1.VirtualMachineInstanceIDLabel] = names.LabelValue(vmi.Name)
	labels[v1.DeprecatedVirtualMachineNameLabel] = names.NameLabel(vmi)
	if inject, ok := vmi.Annotations[names.MeshInject]; ok {
		labels[names.MeshInject] = names.LabelValue(inject)
	}
	return labels
}

// Annotations returns those of a VMI's launcher Pod.
func Annotations(vmi *v1.VirtualMachineInstance) map[string]string {
	annotations := names.Untracked(vmi.Annotations)
	for k := range annotations {
		if strings.HasPrefix(k, "kubectl.kubernetes.io") || k == names.Defaults ||
			strings.HasPrefix(k, v1.ControllerAPIStorageVersionObservedAnnotation) ||
			strings.HasPrefix(k, v1.ControllerAPILatestVersionObservedAnnotation) {
			delete(annotations, k)
		}
	}
	annotations[v1.DomainAnnotation] = vmi.Name
	annotations["kubectl.kubernetes.io/default-container"] = guestv1.ComputeContainer
	annotations[v1.MigrationTransportUnixAnnotation] = "true"
	annotations["descheduler.alpha.kubernetes.io/request-evict-only"] = ""
	annotateNetworks(annotations, vmi)
	return annotations
}

func spec(vmi *v1.VirtualMachineInstance, cfg config.Config) k8sv1.PodSpec {
	no, grace := false, defaults.GracePeriod(vmi)+extraGrace
	s := k8sv1.PodSpec{
		Hostname:                      names.Hostname(vmi),
		Subdomain:                     vmi.Spec.Subdomain,
		RestartPolicy:                 k8sv1.RestartPolicyNever,
		EnableServiceLinks:            &no,
		AutomountServiceAccountToken:  &no,
		TerminationGracePeriodSeconds: &grace,
		ReadinessGates:                []k8sv1.PodReadinessGate{{ConditionType: k8sv1.PodConditionType(names.UnpausedGate)}},
		SecurityContext:               podSecurity(cfg),
		NodeSelector:                  nodeSelector(vmi, cfg),
		Affinity:                      affinity(vmi),
		Tolerations:                   vmi.Spec.Tolerations,
		TopologySpreadConstraints:     vmi.Spec.TopologySpreadConstraints,
		PriorityClassName:             vmi.Spec.PriorityClassName,
		SchedulerName:                 vmi.Spec.SchedulerName,
		DNSPolicy:                     vmi.Spec.DNSPolicy,
		DNSConfig:                     vmi.Spec.DNSConfig,
	}
	if cfg.RuntimeClass != "" {
		s.RuntimeClassName = &cfg.RuntimeClass
	}
	return s
}

// podSecurity is what the restricted Pod Security Standard asks, and the one sysctl by which the launcher's DHCP
// server may open port 67 without a capability. The administrator may name a seccomp profile of the nodes.
func podSecurity(cfg config.Config) *k8sv1.PodSecurityContext {
	user, yes := int64(guestv1.User), true
	profile := k8sv1.SeccompProfile{Type: k8sv1.SeccompProfileTypeRuntimeDefault}
	if cfg.Seccomp != nil {
		profile = *cfg.Seccomp
	}
	return &k8sv1.PodSecurityContext{
		RunAsUser:      &user,
		RunAsGroup:     &user,
		RunAsNonRoot:   &yes,
		FSGroup:        &user,
		SeccompProfile: &profile,
		Sysctls:        []k8sv1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}},
	}
}

func compute(vmi *v1.VirtualMachineInstance, cfg config.Config, image string) k8sv1.Container {
	no, yes := false, true
	return k8sv1.Container{
		Name:            guestv1.ComputeContainer,
		Image:           image,
		ImagePullPolicy: cfg.ImagePullPolicy,
		Command:         []string{launcher},
		Args: []string{
			"--namespace", vmi.Namespace, "--name", vmi.Name, "--uid", string(vmi.UID),
			"--grace-period-seconds", strconv.FormatInt(defaults.GracePeriod(vmi), 10),
		},
		Ports:          ports(vmi),
		Resources:      size.Pod(vmi, cfg),
		ReadinessProbe: probe(vmi.Spec.ReadinessProbe),
		LivenessProbe:  probe(vmi.Spec.LivenessProbe),
		// Only what the launcher writes as its reason: a log's tail is no reason, and conditions and events show it.
		TerminationMessagePolicy: k8sv1.TerminationMessageReadFile,
		SecurityContext: &k8sv1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &yes,
			Capabilities:             &k8sv1.Capabilities{Drop: []k8sv1.Capability{"ALL"}},
		},
	}
}

func ports(vmi *v1.VirtualMachineInstance) []k8sv1.ContainerPort {
	var out []k8sv1.ContainerPort
	for _, i := range vmi.Spec.Domain.Devices.Interfaces {
		for _, p := range i.Ports {
			protocol := k8sv1.Protocol(p.Protocol)
			if protocol == "" {
				protocol = k8sv1.ProtocolTCP
			}
			out = append(out, k8sv1.ContainerPort{Name: p.Name, ContainerPort: p.Port, Protocol: protocol})
		}
	}
	return out
}

// probe returns a probe of the guest: it starts 10 s later than asked, for the time until the guest boots, and its
// answer may take a second longer. What goes by the guest's agent is asked by the launcher's own program.
func probe(p *v1.Probe) *k8sv1.Probe {
	if p == nil {
		return nil
	}
	handler, timeout := k8sv1.ProbeHandler{HTTPGet: p.HTTPGet, TCPSocket: p.TCPSocket}, max(p.TimeoutSeconds, 1)
	if p.Exec != nil || p.GuestAgentPing != nil {
		ask := []string{launcher, "ask", "--timeout-seconds", strconv.FormatInt(int64(timeout), 10)}
		if p.Exec != nil {
			ask = append(append(ask, "--"), p.Exec.Command...)
		}
		handler.Exec = &k8sv1.ExecAction{Command: ask}
	}
	return &k8sv1.Probe{
		ProbeHandler:        handler,
		InitialDelaySeconds: p.InitialDelaySeconds + 10,
		TimeoutSeconds:      timeout + 1,
		PeriodSeconds:       p.PeriodSeconds,
		SuccessThreshold:    p.SuccessThreshold,
		FailureThreshold:    p.FailureThreshold,
	}
}
