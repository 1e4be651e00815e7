package config

import "strings"

// HostDiskAnnotation of the KubeVirt lists, with commas, the directories of nodes in which VMs may have hostDisks. The
// feature gate alone opens none: whoever may make a VM would else reach every file that the launcher's user can.
const HostDiskAnnotation = "virtstack.io/host-disk-directories"

func hostDiskDirs(annotations map[string]string) []string {
	var dirs []string
	for dir := range strings.SplitSeq(annotations[HostDiskAnnotation], ",") {
		if dir = strings.TrimSpace(dir); strings.HasPrefix(dir, "/") && dir != "/" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
