// Package v1alpha1 holds the kinds of virtstack's own group, virtstack.io.
// Types only: defaults that a comment names are applied by the controller that reads the
// field, never written into the object, which belongs to whoever committed it.
//
// +kubebuilder:object:generate=true
// +groupName=virtstack.io
package v1alpha1
