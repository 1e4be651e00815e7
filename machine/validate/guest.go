package validate

import (
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
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
	if s := spec.TerminationGracePeriodSeconds; s != nil && *s < 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *s, "must be 0 or more seconds"))
	}
	errs = append(errs, oneOf(path.Child("architecture"), spec.Architecture, architectures)...)
	if s := spec.EvictionStrategy; s != nil {
		errs = append(errs, oneOf(path.Child("evictionStrategy"), *s, evictionStrategies)...)
	}
	if s := spec.StartStrategy; s != nil {
		errs = append(errs, oneOf(path.Child("startStrategy"), *s, []v1.StartStrategy{v1.StartStrategyPaused})...)
	}
	errs = append(errs, dns(path, spec)...)
	errs = append(errs, probe(path.Child("livenessProbe"), spec.LivenessProbe)...)
	errs = append(errs, probe(path.Child("readinessProbe"), spec.ReadinessProbe)...)
	return append(errs, credentials(path.Child("accessCredentials"), spec.AccessCredentials)...)
}

func dns(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	errs := oneOf(path.Child("dnsPolicy"), spec.DNSPolicy, dnsPolicies)
	if spec.DNSPolicy == k8sv1.DNSNone && (spec.DNSConfig == nil || len(spec.DNSConfig.Nameservers) == 0) {
		errs = append(errs, field.Required(path.Child("dnsConfig", "nameservers"),
			"must have the address of a name server when dnsPolicy is None"))
	}
	return errs
}

func probe(path *field.Path, p *v1.Probe) field.ErrorList {
	if p == nil {
		return nil
	}
	return exactlyOne(path, p.Handler)
}

func credentials(path *field.Path, list []v1.AccessCredential) field.ErrorList {
	var errs field.ErrorList
	for i, c := range list {
		at := path.Index(i)
		if wrong := exactlyOne(at, c); len(wrong) > 0 {
			errs = append(errs, wrong...)
			continue
		}
		source, secret := at.Child("userPassword", "source"), (*v1.AccessCredentialSecretSource)(nil)
		switch {
		case c.SSHPublicKey != nil:
			source, secret = at.Child("sshPublicKey", "source"), c.SSHPublicKey.Source.Secret
			errs = append(errs, exactlyOne(at.Child("sshPublicKey", "propagationMethod"), c.SSHPublicKey.PropagationMethod)...)
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

// objectName wants what an object may be called, which is harmless as the name of a file.
func objectName(path *field.Path, name string) field.ErrorList {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(path, short(name),
			"must be DNS labels with '.' between them: lower-case letters, digits and '-', at most 253 characters, "+
				"such as data.web-1")}
	}
	return nil
}
