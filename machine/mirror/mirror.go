// Package mirror keeps labels and annotations of a made object like those it was made from, and leaves those alone that
// someone else put on it.
package mirror

import (
	"strings"

	v1 "kubevirt.io/api/core/v1"
)

// Change is what a merge patch says of a map: a value to set, nil to drop.
type Change map[string]*string

// Diff returns the change that brings have to want; empty if there is nothing to do. Keys that aren't wanted are
// dropped only if ours says that we have set them. Keys of kubevirt.io are no one's to mirror: their writers are others.
func Diff(have, want map[string]string, ours []string) Change {
	out := Change{}
	for k, v := range want {
		if h, ok := have[k]; !reserved(k) && (!ok || h != v) {
			out[k] = &v
		}
	}
	for _, k := range ours {
		_, wanted := want[k]
		if _, there := have[k]; there && !wanted && !reserved(k) {
			out[k] = nil
		}
	}
	return out
}

func reserved(key string) bool {
	group, _, _ := strings.Cut(key, "/")
	return key == v1.AppLabel || group == "kubevirt.io" || strings.HasSuffix(group, ".kubevirt.io")
}
