// Package acpi finds the ACPI tables that a guest has besides its machine's: licences, from Secrets.
package acpi

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/projected"
)

// header is how many bytes every table begins with, its four letters first; source: the ACPI specification.
const header = 36

// Tables returns the files of the tables that a VMI names, by their kinds slic and msdm, in the directory below which
// each Secret of the VMI's volumes is mounted. One whose Secret isn't there yet is a NotFound.
func Tables(vmi *v1.VirtualMachineInstance, secrets string) (map[string]string, error) {
	fw := vmi.Spec.Domain.Firmware
	if fw == nil || fw.ACPI == nil {
		return nil, nil
	}
	path, out := field.NewPath("spec", "domain", "firmware", "acpi"), map[string]string{}
	for _, t := range []struct{ kind, field, volume string }{{"slic", "slicNameRef", fw.ACPI.SlicNameRef}, {"msdm", "msdmNameRef", fw.ACPI.MsdmNameRef}} {
		if t.volume == "" {
			continue
		}
		file, err := table(vmi, secrets, t.kind, t.volume, path.Child(t.field))
		if err != nil {
			return nil, err
		}
		out[t.kind] = file
	}
	return out, nil
}

func table(vmi *v1.VirtualMachineInstance, secrets, kind, volume string, path *field.Path) (string, error) {
	at := slices.IndexFunc(vmi.Spec.Volumes, func(v v1.Volume) bool { return v.Name == volume && v.Secret != nil })
	if at < 0 { // nor is the name of anything else followed
		return "", field.Invalid(path, volume, "must be the name of one of the machine's volumes with secret")
	}
	dir, key, secret := filepath.Join(secrets, volume), kind+".bin", vmi.Spec.Volumes[at].Secret.SecretName
	files, err := projected.Read(dir)
	if err != nil {
		return "", fmt.Errorf("%s: Secret %q: %w", path, secret, err)
	}
	i := slices.IndexFunc(files, func(f projected.File) bool { return f.Name == key })
	switch {
	case i < 0:
		return "", field.NotFound(path, fmt.Sprintf("key %s in Secret %s", key, secret))
	case len(files[i].Content) < header || !bytes.HasPrefix(files[i].Content, []byte(strings.ToUpper(kind))):
		return "", field.Invalid(path, volume, fmt.Sprintf("key %s in Secret %s must be a whole ACPI table %s, such as a copy of /sys/firmware/acpi/tables/%[3]s",
			key, secret, strings.ToUpper(kind)))
	}
	return filepath.Join(dir, key), nil
}
