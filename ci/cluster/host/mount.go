package host

import (
	"os"
	"strings"
)

// Mounts returns the mount points of this process's namespace that lie in dir or show a part of it. There should be
// none: all of the cluster's mounts are in its nodes' namespaces.
func Mounts(dir string) ([]string, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return mountsOf(string(raw), dir), nil
}

func mountsOf(mountinfo, dir string) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		root, point := f[3], f[4]
		if within(root, dir) || within(point, dir) {
			found = append(found, point)
		}
	}
	return found
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
