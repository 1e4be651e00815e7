// Package policies holds policies of admission that a cluster's administrator may choose: one directory each, with the
// ConfigMap of its parameters, and manifests that it lets pass and refuses.
package policies

import "embed"

// Files are the kustomizations, the root's has all of them.
//
//go:embed kustomization.yaml */kustomization.yaml */params.yaml */policy.yaml
var Files embed.FS
