package validate

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// Read is an object that a machine's guest can read, because a field of its spec names it.
type Read struct {
	Path           *field.Path
	Resource, Name string // resource is secrets, configmaps or serviceaccounts
}

// Reads returns what the machine in an object in JSON would let its guest read. A kind without a machine has none.
func Reads(kind schema.GroupKind, object []byte) ([]Read, error) {
	type holder struct {
		Spec struct {
			v1.VirtualMachineInstanceSpec `json:",inline"`
			Template                      *v1.VirtualMachineInstanceTemplateSpec `json:"template"`
			VirtualMachineTemplate        *struct {
				Spec v1.VirtualMachineSpec `json:"spec"`
			} `json:"virtualMachineTemplate"`
		} `json:"spec"`
	}
	h := holder{}
	if err := json.Unmarshal(object, &h); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	path := field.NewPath("spec")
	switch kind.Kind {
	case "VirtualMachineInstance":
		return readsOf(path, &h.Spec.VirtualMachineInstanceSpec), nil
	case "VirtualMachine", "VirtualMachineInstanceReplicaSet":
		if h.Spec.Template != nil {
			return readsOf(path.Child("template", "spec"), &h.Spec.Template.Spec), nil
		}
	case "VirtualMachinePool":
		if p := h.Spec.VirtualMachineTemplate; p != nil && p.Spec.Template != nil {
			return readsOf(path.Child("virtualMachineTemplate", "spec", "template", "spec"), &p.Spec.Template.Spec), nil
		}
	}
	return nil, nil
}

func readsOf(path *field.Path, spec *v1.VirtualMachineInstanceSpec) []Read {
	var all []Read
	add := func(at *field.Path, resource, name string) {
		if name != "" {
			all = append(all, Read{at, resource, name})
		}
	}
	for i := range spec.Volumes {
		v, at := &spec.Volumes[i].VolumeSource, path.Child("volumes").Index(i)
		switch {
		case v.Secret != nil:
			add(at.Child("secret", "secretName"), "secrets", v.Secret.SecretName)
		case v.ConfigMap != nil:
			add(at.Child("configMap", "name"), "configmaps", v.ConfigMap.Name)
		case v.ServiceAccount != nil:
			add(at.Child("serviceAccount", "serviceAccountName"), "serviceaccounts", v.ServiceAccount.ServiceAccountName)
		case v.Sysprep != nil && v.Sysprep.Secret != nil:
			add(at.Child("sysprep", "secret", "name"), "secrets", v.Sysprep.Secret.Name)
		case v.Sysprep != nil && v.Sysprep.ConfigMap != nil:
			add(at.Child("sysprep", "configMap", "name"), "configmaps", v.Sysprep.ConfigMap.Name)
		case v.CloudInitNoCloud != nil:
			all = append(all, seedReads(at.Child("cloudInitNoCloud"), *v.CloudInitNoCloud)...)
		case v.CloudInitConfigDrive != nil:
			all = append(all, seedReads(at.Child("cloudInitConfigDrive"), v1.CloudInitNoCloudSource(*v.CloudInitConfigDrive))...)
		}
	}
	for i, c := range spec.AccessCredentials {
		at := path.Child("accessCredentials").Index(i)
		if c.SSHPublicKey != nil && c.SSHPublicKey.Source.Secret != nil {
			add(at.Child("sshPublicKey", "source", "secret", "secretName"), "secrets", c.SSHPublicKey.Source.Secret.SecretName)
		}
		if c.UserPassword != nil && c.UserPassword.Source.Secret != nil {
			add(at.Child("userPassword", "source", "secret", "secretName"), "secrets", c.UserPassword.Source.Secret.SecretName)
		}
	}
	return all
}

func seedReads(path *field.Path, c v1.CloudInitNoCloudSource) []Read {
	var all []Read
	if c.UserDataSecretRef != nil {
		all = append(all, Read{path.Child("secretRef", "name"), "secrets", c.UserDataSecretRef.Name})
	}
	if c.NetworkDataSecretRef != nil {
		all = append(all, Read{path.Child("networkDataSecretRef", "name"), "secrets", c.NetworkDataSecretRef.Name})
	}
	return all
}
