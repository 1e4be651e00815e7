package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/kustomize"
)

// BundleBuild says how the objects are made of what the source has. Its fields mean what those of a Flux Kustomization
// of the same names do.
type BundleBuild struct {
	// Patches are strategic merge patches and JSON patches, applied to what the path builds to.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Patches []kustomize.Patch `json:"patches,omitempty"`

	// Images replace the names, tags or digests of images.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Images []kustomize.Image `json:"images,omitempty"`

	// Components are directories of kustomize components, relative to path; they can't lead out of the source.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Components []string `json:"components,omitempty"`

	// IgnoreMissingComponents leaves out the components that the source doesn't have.
	// +optional
	IgnoreMissingComponents bool `json:"ignoreMissingComponents,omitempty"`

	// NamePrefix is put before the name of every object.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	NamePrefix string `json:"namePrefix,omitempty"`

	// NameSuffix is put behind the name of every object.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	NameSuffix string `json:"nameSuffix,omitempty"`

	// CommonMetadata has labels and annotations that every object gets; they win over its own.
	// +optional
	CommonMetadata *CommonMetadata `json:"commonMetadata,omitempty"`

	// PostBuild replaces ${variables} in what was built. An object that has the label or annotation
	// kustomize.toolkit.fluxcd.io/substitute: disabled is left as it is.
	// +optional
	PostBuild *PostBuild `json:"postBuild,omitempty"`
}

// CommonMetadata is what every object gets.
type CommonMetadata struct {
	// Labels of every object.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of every object.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SubstituteStrategy says when variables are looked for.
//
// +kubebuilder:validation:Enum=WithVariables;Always
type SubstituteStrategy string

const (
	// SubstituteWithVariables looks for them if there is at least one.
	SubstituteWithVariables SubstituteStrategy = "WithVariables"
	// SubstituteAlways looks for them in any case, so that ${name:=default} works without one.
	SubstituteAlways SubstituteStrategy = "Always"
)

// PostBuild says what is done to the objects after kustomize.
type PostBuild struct {
	// SubstituteStrategy says when variables are looked for. Absent: WithVariables.
	// +optional
	SubstituteStrategy SubstituteStrategy `json:"substituteStrategy,omitempty"`

	// Substitute are variables and their values; they win over those of substituteFrom.
	// +optional
	Substitute map[string]string `json:"substitute,omitempty"`

	// SubstituteFrom are ConfigMaps and Secrets in the Bundle's namespace, read with the rights of its account, whose
	// keys are variables. Later ones win over earlier ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	SubstituteFrom []SubstituteReference `json:"substituteFrom,omitempty"`

	// Strict refuses a variable that has neither a value nor a default. Absent: it is replaced by nothing.
	// +optional
	Strict bool `json:"strict,omitempty"`
}

// SubstituteReference names an object whose keys are variables.
type SubstituteReference struct {
	// Kind is Secret or ConfigMap.
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind"`

	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Optional makes it no failure that the object isn't there.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// BundleHealth says what the health of a revision is.
type BundleHealth struct {
	// HealthChecks are objects whose health is waited for where wait is false; with wait, all that was applied is
	// looked at, and these as well.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	HealthChecks []HealthCheck `json:"healthChecks,omitempty"`

	// HealthCheckExprs say in CEL what the health of a kind is, in place of its conditions. An expression may use
	// everything that the object has; the order is inProgress, failed, current, and what nothing is true of is in
	// progress.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs,omitempty"`
}

// HealthCheck names an object whose health counts.
type HealthCheck struct {
	// APIVersion of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the object. Absent: that of the Bundle.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// BundleRollback says what happens to a revision that isn't healthy in time.
type BundleRollback struct {
	// OnFailure goes back to the last revision that was healthy, and stays there until the source has another one than
	// that which failed.
	OnFailure bool `json:"onFailure"`
}

// RolledBack is what a Bundle has gone back from, and to.
type RolledBack struct {
	// From is the revision that the source has and the cluster doesn't.
	From string `json:"from"`

	// To is the last revision that was healthy, which is applied in its place.
	To string `json:"to"`

	// Generation is the metadata.generation of the Bundle that failed; a newer one is tried again.
	Generation int64 `json:"generation"`

	// Reason is what failed.
	Reason string `json:"reason"`

	// Message says what.
	// +optional
	Message string `json:"message,omitempty"`

	// Time is when it was decided.
	Time metav1.Time `json:"time"`
}
