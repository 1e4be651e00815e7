//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func disk(name string) v1.Disk {
	return v1.Disk{Name: name, DiskDevice: v1.DiskDevice{Disk: &v1.DiskTarget{Bus: v1.DiskBusVirtio}}}
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// inPod returns the processes whose executable is called name and that share a PID namespace with p: those of its Pod.
func inPod(p process, name string) []process {
	space, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.pid))
	var same []process
	for _, q := range find("") {
		dir := fmt.Sprintf("/proc/%d", q.pid)
		if other, err := os.Readlink(filepath.Join(dir, "ns/pid")); err != nil || other != space {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if name == "" || strings.HasPrefix(name, string(bytes.TrimSpace(comm))) && len(comm) > 1 {
			same = append(same, q)
		}
	}
	return same
}
