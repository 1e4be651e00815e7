package validate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	backup "kubevirt.io/api/backup/v1alpha1"
	clone "kubevirt.io/api/clone/v1beta1"
	v1 "kubevirt.io/api/core/v1"
	export "kubevirt.io/api/export/v1beta1"
	instancetype "kubevirt.io/api/instancetype/v1beta1"
	migrations "kubevirt.io/api/migrations/v1alpha1"
	pool "kubevirt.io/api/pool/v1beta1"
	snapshot "kubevirt.io/api/snapshot/v1beta1"

	"virtstack.io/virtstack/machine/config"
)

// Verdict is what the rules say about an object: it is right if there are no errors. Warnings are for its author.
type Verdict struct {
	Errors   field.ErrorList
	Warnings []string
}

// rule reviews an object in JSON; old is nil for one that is new.
type rule func(object, old []byte, c config.Config) (Verdict, error)

// rules are by group and kind; all versions of a kind have the same fields.
var rules = map[schema.GroupKind]rule{
	{Group: "kubevirt.io", Kind: "VirtualMachine"}:                                 of(virtualMachine),
	{Group: "kubevirt.io", Kind: "VirtualMachineInstance"}:                         of(instance),
	{Group: "kubevirt.io", Kind: "VirtualMachineInstanceReplicaSet"}:               of(replicaSet),
	{Group: "kubevirt.io", Kind: "VirtualMachineInstancePreset"}:                   of(preset),
	{Group: "kubevirt.io", Kind: "VirtualMachineInstanceMigration"}:                of(migration),
	{Group: "kubevirt.io", Kind: "KubeVirt"}:                                       of(kubeVirt),
	{Group: "pool.kubevirt.io", Kind: "VirtualMachinePool"}:                        of(machinePool),
	{Group: "migrations.kubevirt.io", Kind: "MigrationPolicy"}:                     of(policy),
	{Group: "snapshot.kubevirt.io", Kind: "VirtualMachineSnapshot"}:                of(machineSnapshot),
	{Group: "snapshot.kubevirt.io", Kind: "VirtualMachineRestore"}:                 of(restore),
	{Group: "export.kubevirt.io", Kind: "VirtualMachineExport"}:                    of(machineExport),
	{Group: "clone.kubevirt.io", Kind: "VirtualMachineClone"}:                      of(machineClone),
	{Group: "backup.kubevirt.io", Kind: "VirtualMachineBackup"}:                    of(machineBackup),
	{Group: "backup.kubevirt.io", Kind: "VirtualMachineBackupTracker"}:             of(tracker),
	{Group: "instancetype.kubevirt.io", Kind: "VirtualMachineInstancetype"}:        of(namespacedInstancetype),
	{Group: "instancetype.kubevirt.io", Kind: "VirtualMachineClusterInstancetype"}: of(clusterInstancetype),
	{Group: "instancetype.kubevirt.io", Kind: "VirtualMachinePreference"}:          of(namespacedPreference),
	{Group: "instancetype.kubevirt.io", Kind: "VirtualMachineClusterPreference"}:   of(clusterPreference),
}

// Kinds returns the kinds that have rules, sorted by name.
func Kinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for kind := range rules {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// Object reviews an object in JSON, as a change of old unless that is nil, under the cluster's configuration. A kind
// without rules is right. The error says that the JSON does not fit the kind.
func Object(kind schema.GroupKind, object, old []byte, c config.Config) (Verdict, error) {
	review, ok := rules[kind]
	if !ok {
		return Verdict{}, nil
	}
	v, err := review(object, old, c)
	if instead, ok := idle[kind]; ok && old == nil && err == nil && len(v.Errors) == 0 {
		v.Warnings = append(v.Warnings, kind.Kind+idleWords+instead)
	}
	return v, err
}

// of makes a rule of a function on the kind's Go type.
func of[T any](review func(object, old *T, c config.Config) Verdict) rule {
	return func(object, old []byte, c config.Config) (Verdict, error) {
		now, was := new(T), (*T)(nil)
		if err := json.Unmarshal(object, now); err != nil {
			return Verdict{}, fmt.Errorf("reading the object: %w", err)
		}
		if old != nil {
			was = new(T)
			// One that does not fit its type any more may be repaired: nothing is compared with it.
			if err := json.Unmarshal(old, was); err != nil {
				was = nil
			}
		}
		return review(now, was, c), nil
	}
}

// The Go types of the kinds, by the names that the rules use.
type (
	machineKind     = v1.VirtualMachine
	poolKind        = pool.VirtualMachinePool
	snapshotKind    = snapshot.VirtualMachineSnapshot
	restoreKind     = snapshot.VirtualMachineRestore
	exportKind      = export.VirtualMachineExport
	cloneKind       = clone.VirtualMachineClone
	backupKind      = backup.VirtualMachineBackup
	trackerKind     = backup.VirtualMachineBackupTracker
	policyKind      = migrations.MigrationPolicy
	instancetypeOne = instancetype.VirtualMachineInstancetype
	preferenceOne   = instancetype.VirtualMachinePreference
)
