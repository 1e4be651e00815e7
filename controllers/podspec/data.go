package podspec

import (
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/names"
)

// dataMode is that of files which the launcher reads by its group.
const dataMode int32 = 0o440

// tokenSeconds is how long a service account's token may serve a guest, which gets it once, on an image. It ends with
// the Pod in any case.
const tokenSeconds int64 = 365 * 24 * 3600

// addData mounts what the kubelet brings for a volume, if it brings anything. A Secret or ConfigMap that isn't there
// yet doesn't hold the Pod up: the launcher says which one it waits for, which a Pod couldn't.
func addData(s *k8sv1.PodSpec, v *v1.Volume) {
	sources := dataOf(v)
	if v.ServiceAccount != nil {
		s.ServiceAccountName = v.ServiceAccount.ServiceAccountName
	}
	if len(sources) > 0 {
		project(s, guestv1.SecretDir+"/"+v.Name, names.PodVolume("secret", v.Name), sources)
	}
}

func project(s *k8sv1.PodSpec, path, name string, sources []k8sv1.VolumeProjection) {
	mode := dataMode
	mount(s, path, k8sv1.Volume{Name: name, VolumeSource: k8sv1.VolumeSource{
		Projected: &k8sv1.ProjectedVolumeSource{Sources: sources, DefaultMode: &mode},
	}})
}

// addCredentials mounts each Secret with keys or passwords for the guest once.
func addCredentials(s *k8sv1.PodSpec, list []v1.AccessCredential) {
	seen := map[string]bool{}
	for _, c := range list {
		name := credentialSecret(c)
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		sources := secrets(&k8sv1.LocalObjectReference{Name: name})
		project(s, guestv1.CredentialDir+"/"+name, names.PodVolume("credential", name), sources)
	}
}

// credentialSecret is the name of the Secret that a credential is in, empty where it names none.
func credentialSecret(c v1.AccessCredential) string {
	switch {
	case c.SSHPublicKey != nil && c.SSHPublicKey.Source.Secret != nil:
		return c.SSHPublicKey.Source.Secret.SecretName
	case c.UserPassword != nil && c.UserPassword.Source.Secret != nil:
		return c.UserPassword.Source.Secret.SecretName
	}
	return ""
}

func dataOf(v *v1.Volume) []k8sv1.VolumeProjection {
	switch {
	case v.CloudInitNoCloud != nil:
		return secrets(v.CloudInitNoCloud.UserDataSecretRef, v.CloudInitNoCloud.NetworkDataSecretRef)
	case v.CloudInitConfigDrive != nil:
		return secrets(v.CloudInitConfigDrive.UserDataSecretRef, v.CloudInitConfigDrive.NetworkDataSecretRef)
	case v.ConfigMap != nil:
		return configMap(&v.ConfigMap.LocalObjectReference)
	case v.Secret != nil:
		return secrets(&k8sv1.LocalObjectReference{Name: v.Secret.SecretName})
	case v.Sysprep != nil:
		return append(configMap(v.Sysprep.ConfigMap), secrets(v.Sysprep.Secret)...)
	case v.DownwardAPI != nil:
		return []k8sv1.VolumeProjection{{DownwardAPI: &k8sv1.DownwardAPIProjection{Items: v.DownwardAPI.Fields}}}
	case v.ServiceAccount != nil:
		return serviceAccount()
	}
	return nil
}

// secrets are those that are named, each once.
func secrets(refs ...*k8sv1.LocalObjectReference) []k8sv1.VolumeProjection {
	var sources []k8sv1.VolumeProjection
	seen, optional := map[string]bool{}, true
	for _, r := range refs {
		if r == nil || seen[r.Name] {
			continue
		}
		seen[r.Name] = true
		sources = append(sources, k8sv1.VolumeProjection{Secret: &k8sv1.SecretProjection{LocalObjectReference: *r, Optional: &optional}})
	}
	return sources
}

func configMap(ref *k8sv1.LocalObjectReference) []k8sv1.VolumeProjection {
	if ref == nil {
		return nil
	}
	optional := true
	return []k8sv1.VolumeProjection{{ConfigMap: &k8sv1.ConfigMapProjection{LocalObjectReference: *ref, Optional: &optional}}}
}

// serviceAccount is what a Pod finds of its account, under the names it finds it by. It is the guest's and not the
// launcher's: the Pod mounts no token of its own.
func serviceAccount() []k8sv1.VolumeProjection {
	seconds := tokenSeconds
	return []k8sv1.VolumeProjection{
		{ServiceAccountToken: &k8sv1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
		{ConfigMap: &k8sv1.ConfigMapProjection{
			LocalObjectReference: k8sv1.LocalObjectReference{Name: "kube-root-ca.crt"},
			Items:                []k8sv1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
		{DownwardAPI: &k8sv1.DownwardAPIProjection{Items: []k8sv1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &k8sv1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
		}}},
	}
}
