package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// BundleKind is the kind of a Bundle.
	BundleKind = "Bundle"
	// BundleFinalizer keeps a deleted Bundle until what it applied is pruned.
	BundleFinalizer = "virtstack.io/bundle"

	// DefaultBundleInterval is used where spec.interval is absent.
	DefaultBundleInterval = 5 * time.Minute
	// DefaultBundleTimeout is used where spec.timeout is absent.
	DefaultBundleTimeout = 5 * time.Minute
	// DefaultBundleServiceAccount is used where spec.serviceAccountName is absent.
	DefaultBundleServiceAccount = "default"
)

// Bundle keeps the objects that one kustomize path builds to, at one revision of its
// source, applied in the cluster.
//
// +kubebuilder:object:root=true
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BundleSpec `json:"spec"`

	// Status says which revision is applied and how it went.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status BundleStatus `json:"status,omitempty"`
}

// BundleList is a list of Bundles.
//
// +kubebuilder:object:root=true
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bundle `json:"items"`
}

// BundleSpec says what is applied, from where, and how often that is looked at.
type BundleSpec struct {
	// Source is where the revision comes from.
	Source BundleSource `json:"source"`

	// Path is the directory of the kustomization, relative to the root of the source. Without a
	// kustomization.yaml there, one that lists every manifest beneath the directory is assumed.
	// Absent: the root.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.contains('\\\\')",message="must be relative to the root of the source, with / between its parts"
	// +kubebuilder:validation:XValidation:rule="!self.split('/').exists(part, part == '..')",message="must not contain .."
	Path string `json:"path,omitempty"`

	// Interval is the time between two looks at the source, which is also how often drift in the
	// cluster is corrected. A Go duration (30s, 5m); at least 1s. Absent: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="must be at least 1s, such as 30s or 5m"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Prune says what happens to objects that an earlier revision applied and this one does not
	// contain. Absent: they stay.
	// +optional
	Prune *BundlePrune `json:"prune,omitempty"`

	// DeletionPolicy says what becomes of the applied objects when the Bundle is deleted. prune.vms holds all the same,
	// and protected machines stay. Absent: MirrorPrune.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Wait makes Ready wait until every applied object is healthy. Absent: true.
	// +optional
	Wait *bool `json:"wait,omitempty"`

	// Timeout limits one fetch, build, apply and wait together. A Go duration; at least 1s.
	// Absent: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="must be at least 1s, such as 30s or 5m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// DependsOn are Bundles of the same namespace that must be Ready, at the generation they have now, before anything
	// is fetched or applied.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	DependsOn []LocalObjectReference `json:"dependsOn,omitempty"`

	// RetryInterval is the time between two tries after a failure. A Go duration; at least 1s. Absent: the tries become
	// rarer with time, from 5s up to interval.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="must be at least 1s, such as 30s or 5m"
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`

	// Receiver takes requests of a Git server to look at the source at once, at path /hook/<namespace>/<name> of Service
	// virt-bundles-receiver. Absent: it is looked at after every interval only.
	// +optional
	Receiver *BundleReceiver `json:"receiver,omitempty"`

	// Suspend stops fetching and applying; what is applied stays.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ServiceAccountName is the account, in the Bundle's namespace, whose rights every write uses:
	// a Bundle can do no more than its account. Absent: default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// TargetNamespace is the namespace that every namespaced object is put into, whatever its
	// manifest says. Absent: the manifest's, or the Bundle's where the manifest has none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	TargetNamespace string `json:"targetNamespace,omitempty"`

	BundleBuild  `json:",inline"`
	BundleHealth `json:",inline"`

	// Rollback says what happens to a revision that isn't healthy in time. Absent: it stays.
	// +optional
	Rollback *BundleRollback `json:"rollback,omitempty"`
}

// LocalObjectReference names an object in the namespace of the object that holds the reference.
type LocalObjectReference struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// PrunePolicy says whether one class of objects may be pruned.
//
// +kubebuilder:validation:Enum=Allow;Keep
type PrunePolicy string

const (
	// PruneAllow deletes them like any other object.
	PruneAllow PrunePolicy = "Allow"
	// PruneKeep leaves them and drops them from the inventory.
	PruneKeep PrunePolicy = "Keep"
)

// BundlePrune says what happens to objects that have left the source. Pruning comes last, and
// never after a fetch, build or apply that failed.
type BundlePrune struct {
	// Enabled deletes objects that have left the source, and all of them with the Bundle.
	Enabled bool `json:"enabled"`

	// VMs says whether VirtualMachines and their disks may be pruned. Absent: Allow.
	// +optional
	VMs PrunePolicy `json:"vms,omitempty"`

	// MaxFraction is the part of the Bundle's VirtualMachines, in percent (0% to 100%), that one revision may remove.
	// Nothing of a revision that removes more is applied until approved names enough of them. Absent: 100%.
	// +optional
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	MaxFraction string `json:"maxFraction,omitempty"`

	// Approved are VirtualMachines, as <namespace>/<name>, whose removal is wanted: they do not count against
	// maxFraction; or, as sha256:<digest>, all those together that a revision removes and no other entry names, as the
	// message of condition Ready has it. An entry can be taken out again once its machines are gone.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?|sha256:[0-9a-f]{64})$`
	Approved []string `json:"approved,omitempty"`
}

// DeletionPolicy says what becomes of the applied objects when the Bundle is deleted.
//
// +kubebuilder:validation:Enum=MirrorPrune;Delete;Orphan
type DeletionPolicy string

const (
	// DeletionMirrorPrune deletes them if prune.enabled is set.
	DeletionMirrorPrune DeletionPolicy = "MirrorPrune"
	// DeletionDelete deletes them whatever prune.enabled says.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves them.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// BundleStatus is what the controller has seen and done.
type BundleStatus struct {
	// ObservedGeneration is the metadata.generation that the conditions speak of; -1 before the
	// first look.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready, and Reconciling, Stalled or RolledBack while they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastAttemptedRevision is the revision of the last try, good or bad:
	// <branch or tag>@sha1:<commit>, or sha1:<commit> where the spec names the commit.
	// +optional
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`

	// LastAppliedRevision is the revision that is applied, in the same form.
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`

	// LastHealthyRevision is the last revision that was applied and healthy, in the same form.
	// +optional
	LastHealthyRevision string `json:"lastHealthyRevision,omitempty"`

	// RolledBack says, as long as it is so, that the cluster doesn't have what the source has.
	// +optional
	RolledBack *RolledBack `json:"rolledBack,omitempty"`

	// Inventory lists what is applied.
	// +optional
	Inventory *ResourceInventory `json:"inventory,omitempty"`

	// History has the last revisions that came to a verdict, at most 5, the newest first.
	// +optional
	// +listType=atomic
	History []RevisionOutcome `json:"history,omitempty"`
}

// BundleHistory is how many revisions a Bundle's history has.
const BundleHistory = 5

// RevisionOutcome is what became of one revision.
type RevisionOutcome struct {
	// Revision as in lastAttemptedRevision.
	Revision string `json:"revision"`

	// Outcome is the reason that condition Ready had in the end: ReconciliationSucceeded, or what failed.
	Outcome string `json:"outcome"`

	// Time is when it came to that.
	Time metav1.Time `json:"time"`
}

// ResourceInventory lists objects.
type ResourceInventory struct {
	// Entries are sorted by id.
	Entries []ResourceRef `json:"entries"`
}

// ResourceRef names one object.
type ResourceRef struct {
	// ID is <namespace>_<name>_<group>_<kind>; cluster-scoped objects have an empty namespace.
	ID string `json:"id"`

	// Version is the API version, without group, that the object was applied in.
	Version string `json:"v"`
}

// Prunes tells whether what has left the source is removed.
func (b *Bundle) Prunes() bool { return b.Spec.Prune != nil && b.Spec.Prune.Enabled }

// PrunesAtEnd tells whether what it applied is removed with it.
func (b *Bundle) PrunesAtEnd() bool {
	switch b.Spec.DeletionPolicy {
	case DeletionDelete:
		return true
	case DeletionOrphan:
		return false
	}
	return b.Prunes()
}

// GetConditions returns the status conditions.
func (b *Bundle) GetConditions() []metav1.Condition { return b.Status.Conditions }

// SetConditions replaces the status conditions.
func (b *Bundle) SetConditions(conditions []metav1.Condition) { b.Status.Conditions = conditions }
