package admission

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	backup "kubevirt.io/api/backup/v1alpha1"
	v1 "kubevirt.io/api/core/v1"
	snapshot "kubevirt.io/api/snapshot/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/revision"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/validate"
)

// Cluster is what reviews know of beside the object: everything is as it is when a review comes in.
type Cluster struct {
	// Configuration is the cluster's.
	Configuration func(context.Context) (config.Config, error)
	// May is asked what the user who wants a machine may read.
	May Access
	// Lists may read from a cache, Live from the API server alone. What is missing there is never a reason to refuse.
	Lists, Live client.Reader
}

// beside refuses an object that is right by itself but not beside what else there is. An error means that this
// couldn't be asked.
func (c Cluster) beside(ctx context.Context, r *admissionv1.AdmissionRequest, cfg config.Config) (field.ErrorList, error) {
	if r.Kind.Kind == "VirtualMachine" {
		return c.expanded(ctx, r, cfg)
	}
	if r.Operation != admissionv1.Create {
		return nil, nil
	}
	switch r.Kind.Kind {
	case "VirtualMachineInstanceMigration":
		return c.migration(ctx, r)
	case "VirtualMachineRestore":
		o, all := &snapshot.VirtualMachineRestore{}, &snapshot.VirtualMachineRestoreList{}
		err := c.others(ctx, r, o, all)
		return validate.RestoreBeside(o, all.Items), err
	case "VirtualMachineBackup":
		o, all := &backup.VirtualMachineBackup{}, &backup.VirtualMachineBackupList{}
		err := c.others(ctx, r, o, all)
		return validate.BackupBeside(o, all.Items), err
	case "KubeVirt":
		o, all := &v1.KubeVirt{}, &v1.KubeVirtList{}
		if err := decode(r.Object, o); err != nil {
			return nil, err
		}
		if err := c.Lists.List(ctx, all); err != nil {
			return nil, fmt.Errorf("listing KubeVirts: %w", err)
		}
		o.Namespace, o.Name = r.Namespace, r.Name
		return validate.KubeVirtBeside(o, all.Items), nil
	}
	return nil, nil
}

// others reads the object of the request, and all of its kind and namespace.
func (c Cluster) others(ctx context.Context, r *admissionv1.AdmissionRequest, o client.Object, all client.ObjectList) error {
	if err := json.Unmarshal(r.Object.Raw, o); err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	if err := c.Lists.List(ctx, all, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("listing each %s of namespace %s: %w", r.Kind.Kind, r.Namespace, err)
	}
	return nil
}

func (c Cluster) migration(ctx context.Context, r *admissionv1.AdmissionRequest) (field.ErrorList, error) {
	m, all := &v1.VirtualMachineInstanceMigration{}, &v1.VirtualMachineInstanceMigrationList{}
	if err := c.others(ctx, r, m, all); err != nil {
		return nil, err
	}
	vmi := &v1.VirtualMachineInstance{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: m.Spec.VMIName}, vmi)
	switch {
	case apierrors.IsNotFound(err):
		vmi = nil
	case err != nil:
		return nil, fmt.Errorf("reading VirtualMachineInstance %s/%s: %w", r.Namespace, m.Spec.VMIName, err)
	}
	return validate.MigrationBeside(m, vmi, all.Items), nil
}

// expanded reviews the machine that a VM makes with its instancetype and preference, once both are there.
func (c Cluster) expanded(ctx context.Context, r *admissionv1.AdmissionRequest, cfg config.Config) (field.ErrorList, error) {
	vm := &v1.VirtualMachine{}
	if err := decode(r.Object, vm); err != nil {
		return nil, err
	}
	if vm.DeletionTimestamp != nil || vm.Spec.Instancetype == nil && vm.Spec.Preference == nil {
		return nil, nil
	}
	vm.Namespace = r.Namespace
	found, err := (revision.Finder{Client: c.Live, Live: c.Live}).Find(ctx, vm)
	if err != nil || found.Missing != nil {
		return nil, err
	}
	return validate.Expanded(vm, found.Choice, cfg), nil
}
