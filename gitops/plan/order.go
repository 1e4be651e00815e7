package plan

import (
	"cmp"
	"slices"
)

// ranks are the kinds that others need, in the order in which they are applied; all others come after.
var ranks = []string{
	"CustomResourceDefinition", "Namespace", "ResourceQuota", "StorageClass", "ServiceAccount", "ClusterRole", "ClusterRoleBinding",
	"Role", "RoleBinding", "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "DataVolume", "KubeVirt",
	"VirtualMachineClusterInstancetype", "VirtualMachineInstancetype", "VirtualMachineClusterPreference", "VirtualMachinePreference",
}

func rank(i Item) int {
	r := slices.Index(ranks, i.Kind)
	if r < 0 {
		r = len(ranks)
	}
	if i.Change == Deleted { // last, the other way round
		return 2*len(ranks) + 1 - r
	}
	return r
}

// order sorts and counts items as they are applied.
func order(items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	for i := range items {
		items[i].Order = i + 1
	}
}
