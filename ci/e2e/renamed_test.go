//go:build e2e

package e2e

import (
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
)

// A VM that a commit gives another name has its disk again: the old one lets go of it before the new one starts, and the
// Bundle, which prunes last, doesn't wait for what can't come before.
func TestRenamedVMKeepsItsDisk(t *testing.T) {
	f := newTenant(t, "renamed")
	f.claim("data", "16Mi")
	disk := with("data", claimed("data"))
	f.commit("Add web", map[string][]byte{"vms/web.yaml": f.manifest(f.vm("web", disk))})
	f.follow()
	f.phase("web", v1.Running, 2*time.Minute)
	f.bundle("True", time.Minute)
	f.asked(f.shell("web"), "echo a-site | dd of=/dev/vdb conv=sync,fsync; echo writ''ten", "written")
	renamed := f.commit("Call it site", map[string][]byte{"vms/web.yaml": f.manifest(f.vm("site", disk))})
	f.phase("site", v1.Running, 3*time.Minute)
	f.bundle("True", time.Minute, renamed)
	f.gone(&v1.VirtualMachine{}, "web", time.Second)
	f.qemu("site")
	f.asked(f.shell("site"), "head -c 6 /dev/vdb; echo", "a-site")
}
