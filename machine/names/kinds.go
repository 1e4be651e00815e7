package names

import "k8s.io/apimachinery/pkg/runtime/schema"

// Machine is the kind of a VM.
var Machine = schema.GroupKind{Group: "kubevirt.io", Kind: "VirtualMachine"}

var (
	// Protectable are the kinds that can carry DeleteProtection.
	Protectable = []schema.GroupKind{Machine, {Group: "pool.kubevirt.io", Kind: "VirtualMachinePool"}}
	// Carriers are the kinds whose end takes machines or their disks along.
	Carriers = []schema.GroupKind{{Kind: "PersistentVolumeClaim"}, {Group: "cdi.kubevirt.io", Kind: "DataVolume"}, {Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}}
)
