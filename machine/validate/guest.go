package validate

import (
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/defaults"
)

var (
	architectures      = []string{"amd64", "arm64", "s390x"}
	evictionStrategies = []v1.EvictionStrategy{
		v1.EvictionStrategyNone, v1.EvictionStrategyLiveMigrate,
		v1.EvictionStrategyLiveMigrateIfPossible, v1.EvictionStrategyExternal,
	}
	dnsPolicies = []k8sv1.DNSPolicy{
		k8sv1.DNSClusterFirst, k8sv1.DNSClusterFirstWithHostNet, k8sv1.DNSDefault, k8sv1.DNSNone,
	}
)

// guest checks how a machine is run and what it is called.
func guest(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	var errs field.ErrorList
	if spec.Hostname != "" && len(validation.IsDNS1123Label(spec.Hostname)) > 0 {
		errs = append(errs, field.Invalid(path.Child("hostname"), short(spec.Hostname),
			"must be a DNS label: lower-case letters, digits and '-', at most 63 characters, such as db1"))
	}
	if spec.Subdomain != "" {
		errs = append(errs, objectName(path.Child("subdomain"), spec.Subdomain)...)
	}
	if s := spec.TerminationGracePeriodSeconds; s != nil && (*s < 0 || *s > defaults.MaxGracePeriod) {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *s,
			fmt.Sprintf("must be from 0 to %d seconds", defaults.MaxGracePeriod)))
	}
	errs = append(errs, oneOf(path.Child("architecture"), spec.Architecture, architectures)...)
	if s := spec.EvictionStrategy; s != nil {
		errs = append(errs, oneOf(path.Child("evictionStrategy"), *s, evictionStrategies)...)
	}
	if s := spec.StartStrategy; s != nil {
		errs = append(errs, oneOf(path.Child("startStrategy"), *s, []v1.StartStrategy{v1.StartStrategyPaused})...)
	}
	errs = append(errs, ordered(metav1validation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector")))...)
	errs = append(errs, dns(path, spec)...)
	errs = append(errs, probes(path, spec)...)
	errs = append(errs, placement(path, spec)...)
	return append(errs, credentials(path.Child("accessCredentials"), spec)...)
}

func credentials(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	var errs field.ErrorList
	for i, c := range spec.AccessCredentials {
		at := path.Index(i)
		if wrong := exactlyOne(at, c); len(wrong) > 0 {
			errs = append(errs, wrong...)
			continue
		}
		source, secret := at.Child("userPassword", "source"), (*v1.AccessCredentialSecretSource)(nil)
		switch {
		case c.SSHPublicKey != nil:
			source, secret = at.Child("sshPublicKey", "source"), c.SSHPublicKey.Source.Secret
			errs = append(errs, propagation(at.Child("sshPublicKey", "propagationMethod"), c.SSHPublicKey.PropagationMethod, spec.Volumes)...)
		default:
			secret = c.UserPassword.Source.Secret
			errs = append(errs, exactlyOne(at.Child("userPassword", "propagationMethod"), c.UserPassword.PropagationMethod)...)
		}
		if secret == nil {
			errs = append(errs, field.Required(source.Child("secret"), "must name the Secret that holds it"))
			continue
		}
		errs = append(errs, named(source.Child("secret", "secretName"), secret.SecretName)...)
	}
	return errs
}

// propagation wants one way into the guest, and the seed or the users that it needs.
func propagation(path *field.Path, m v1.SSHPublicKeyAccessCredentialPropagationMethod, volumes []v1.Volume) field.ErrorList {
	if wrong := exactlyOne(path, m); len(wrong) > 0 {
		return wrong
	}
	var noCloud, configDrive bool
	for _, v := range volumes {
		noCloud = noCloud || v.CloudInitNoCloud != nil
		configDrive = configDrive || v.CloudInitConfigDrive != nil
	}
	switch {
	case m.NoCloud != nil && !noCloud:
		return field.ErrorList{field.Invalid(path.Child("noCloud"), "{}", "needs a volume with cloudInitNoCloud")}
	case m.ConfigDrive != nil && !configDrive:
		return field.ErrorList{field.Invalid(path.Child("configDrive"), "{}", "needs a volume with cloudInitConfigDrive")}
	case m.QemuGuestAgent != nil && len(m.QemuGuestAgent.Users) == 0:
		return field.ErrorList{field.Required(path.Child("qemuGuestAgent", "users"), "must name the guest's users that get the keys")}
	}
	return nil
}

// objectName wants what an object may be called, which is harmless as the name of a file.
func objectName(path *field.Path, name string) field.ErrorList {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(path, short(name),
			"must be DNS labels with '.' between them: lower-case letters, digits and '-', at most 253 characters, "+
				"such as data.web-1")}
	}
	return nil
}
