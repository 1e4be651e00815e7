package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	backup "kubevirt.io/api/backup/v1alpha1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/instancetype"
)

// Expanded returns what is wrong with the machine that a VM, its instancetype and its preference make together, for a VM
// that is right by itself. What comes from the two is named as the field of the template that it becomes.
func Expanded(vm *v1.VirtualMachine, c instancetype.Choice, cfg config.Config) field.ErrorList {
	whole, errs := instancetype.Expand(vm, c, cfg)
	if len(errs) > 0 {
		return errs
	}
	if whole.Spec.Template == nil {
		return nil
	}
	errs = VM(whole)
	errs = append(errs, Permitted(field.NewPath("spec", "template"), whole.Spec.Template.ObjectMeta.Annotations, &whole.Spec.Template.Spec, cfg)...)
	for _, err := range errs {
		err.Detail += " (of the machine that spec.instancetype and spec.preference give)"
	}
	return errs
}

// MigrationBeside returns what keeps a new migration from being one. vmi is the instance that it names, nil where there
// is none yet, which is no error; others are the migrations of its namespace.
func MigrationBeside(m *v1.VirtualMachineInstanceMigration, vmi *v1.VirtualMachineInstance, others []v1.VirtualMachineInstanceMigration) field.ErrorList {
	at := field.NewPath("spec", "vmiName")
	for i := range others {
		o := &others[i]
		if o.Name != m.Name && o.Spec.VMIName == m.Spec.VMIName && !o.IsFinal() {
			return field.ErrorList{field.Invalid(at, short(m.Spec.VMIName), fmt.Sprintf("in-flight migration detected: wait for %s, or delete it", o.Name))}
		}
	}
	if vmi == nil || m.Spec.Receive != nil {
		return nil
	}
	if vmi.IsFinal() {
		return field.ErrorList{field.Invalid(at, short(vmi.Name), fmt.Sprintf("must be an instance that runs: this one is %s", vmi.Status.Phase))}
	}
	for _, c := range vmi.Status.Conditions {
		if c.Type != v1.VirtualMachineInstanceIsMigratable || c.Status != "False" {
			continue
		}
		if c.Reason == v1.VirtualMachineInstanceReasonDisksNotMigratable && m.Spec.SendTo != nil {
			return nil // its disks are copied
		}
		return field.ErrorList{field.Invalid(at, short(vmi.Name), fmt.Sprintf("Cannot migrate VMI, Reason: %s, Message: %s", c.Reason, short(c.Message)))}
	}
	return nil
}

// RestoreBeside returns what keeps a new restore from being one: another of the same machine that isn't complete.
func RestoreBeside(r *restoreKind, others []restoreKind) field.ErrorList {
	for i := range others {
		o := &others[i]
		done := o.Status != nil && o.Status.Complete != nil && *o.Status.Complete
		if o.Name != r.Name && !done && equality.Semantic.DeepEqual(o.Spec.Target, r.Spec.Target) {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "target"), short(r.Spec.Target.Name),
				fmt.Sprintf("must have no other restore in progress: wait for %s, or delete it", o.Name))}
		}
	}
	return nil
}

// BackupBeside returns what keeps a new backup from being one: another of the same source that isn't done.
func BackupBeside(b *backupKind, others []backupKind) field.ErrorList {
	for i := range others {
		o := &others[i]
		if o.Name != b.Name && !backedUp(o) && equality.Semantic.DeepEqual(o.Spec.Source, b.Spec.Source) {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "source"), short(b.Spec.Source.Name),
				fmt.Sprintf("must have no other backup in progress: wait for %s, or delete it", o.Name))}
		}
	}
	return nil
}

func backedUp(b *backupKind) bool {
	if b.Status == nil {
		return false
	}
	for _, c := range b.Status.Conditions {
		if c.Type == backup.ConditionDone && c.Status == "True" {
			return true
		}
	}
	return false
}

// KubeVirtBeside refuses a second KubeVirt.
func KubeVirtBeside(kv *v1.KubeVirt, others []v1.KubeVirt) field.ErrorList {
	for i := range others {
		if o := &others[i]; o.Name != kv.Name || o.Namespace != kv.Namespace {
			return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf("Kubevirt is already created: change %s/%s, or delete it first", o.Namespace, o.Name))}
		}
	}
	return nil
}
