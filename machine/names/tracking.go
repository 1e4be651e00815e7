package names

import "strings"

// Keys by which Git tools and kubectl recognise what they applied. A child of such an object that carries them looks
// as if Git had made it, and is pruned.
var (
	trackingKeys     = []string{"app.kubernetes.io/instance", "kubectl.kubernetes.io/last-applied-configuration"}
	trackingPrefixes = []string{"argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/"}
)

// Tracking tells whether a label or annotation key is one by which a tool tracks what it applied.
func Tracking(key string) bool {
	for _, k := range trackingKeys {
		if key == k {
			return true
		}
	}
	for _, p := range trackingPrefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// Untracked returns a copy of labels or annotations without the tracking keys; never nil.
func Untracked(in map[string]string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		if !Tracking(k) {
			out[k] = v
		}
	}
	return out
}
