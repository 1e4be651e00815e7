package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/machine/storage"
)

// What is on the claim of a VMI's state: the variables of its firmware, and a directory of its TPM's.
const (
	variablesFile = "nvram.fd"
	tpmDir        = "tpm"
)

// Keep returns a firmware whose variables, and a TPM whose state, are on the VMI's claim for them if they are to outlive
// the Pod. Others may write to the claim as well: a link in the place of either is refused with a *field.Error.
func (d Dirs) Keep(vmi *v1.VirtualMachineInstance, f domain.Firmware) (domain.Firmware, error) {
	spec, path := &vmi.Spec.Domain, field.NewPath("spec", "domain")
	if storage.KeepsVariables(spec) {
		f.Vars = filepath.Join(d.State, variablesFile)
		if err := kept(f.Vars, 0); err != nil {
			return f, field.Invalid(path.Child("firmware", "bootloader", "efi", "persistent"), true, err.Error())
		}
	}
	if storage.KeepsTPM(spec) {
		f.TPM = filepath.Join(d.State, tpmDir)
		if err := kept(f.TPM, fs.ModeDir); err != nil {
			return f, field.Invalid(path.Child("devices", "tpm", "persistent"), true, err.Error())
		}
	}
	return f, nil
}

// kept wants what is at a path to be of a type, if anything is.
func kept(path string, want fs.FileMode) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != want:
		return fmt.Errorf("%s on the claim of the machine's state is %s: remove it", filepath.Base(path), info.Mode().Type())
	}
	return nil
}
