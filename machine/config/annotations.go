package config

import (
	"slices"
	"strings"
)

const (
	// HostDiskAnnotation of the KubeVirt lists, with commas, the directories of nodes in which VMs may have hostDisks. The
	// feature gate alone opens none: whoever may make a VM would else reach every file that the launcher's user can.
	HostDiskAnnotation = "virtstack.io/host-disk-directories"
	// GitManagersAnnotation of the KubeVirt lists, with commas, further field managers that write what a commit says, which
	// start and stop then respect; one that ends in * stands for all that begin so.
	GitManagersAnnotation = "virtstack.io/git-managers"
)

// listed returns what an annotation lists.
func listed(annotations map[string]string, key string) []string {
	var out []string
	for entry := range strings.SplitSeq(annotations[key], ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			out = append(out, entry)
		}
	}
	return out
}

func hostDiskDirs(annotations map[string]string) []string {
	return slices.DeleteFunc(listed(annotations, HostDiskAnnotation), func(dir string) bool {
		return !strings.HasPrefix(dir, "/") || dir == "/"
	})
}
