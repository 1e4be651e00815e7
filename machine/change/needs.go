package change

import (
	"regexp"
	"strings"
)

// ability is a way to change a guest that runs.
type ability int

const (
	relabel ability = iota + 1
	plugCPU
	plugMemory
	plugDisk
	moveDisk
	plugInterface
	move
)

// needs says what it takes to change a field of a running guest: the first that fits, which is the field or something
// around it; an entry of a list, [], is one that comes or goes whole. A field that fits none is set once, when the guest
// starts.
var needs = []struct {
	path  string
	takes ability
}{
	{"spec.template.metadata.labels", relabel},
	{"spec.template.metadata.annotations", relabel},
	{"spec.template.spec.domain.cpu.sockets", plugCPU},
	{"spec.template.spec.domain.memory.guest", plugMemory},
	{"spec.template.spec.volumes[].persistentVolumeClaim.claimName", moveDisk},
	{"spec.template.spec.volumes[].dataVolume.name", moveDisk},
	{"spec.template.spec.volumes[]", plugDisk},
	{"spec.template.spec.domain.devices.disks[]", plugDisk},
	{"spec.template.spec.domain.devices.interfaces[]", plugInterface},
	{"spec.template.spec.networks[]", plugInterface},
	{"spec.template.spec.nodeSelector", move},
	{"spec.template.spec.affinity", move},
	{"spec.template.spec.tolerations", move},
}

// cans says what this version can do, and what that is to the guest; whys says either to people.
var (
	cans = map[ability]Class{relabel: Hot}

	whys = map[ability]string{
		relabel:       "is carried to the VMI and its Pod",
		plugCPU:       "this version adds no vCPUs to a running guest",
		plugMemory:    "this version adds no memory to a running guest",
		plugDisk:      "this version plugs no disks into a running guest",
		moveDisk:      "this version moves no disk of a running guest",
		plugInterface: "this version plugs no interfaces into a running guest",
		move:          "this version moves no running guest",
	}
)

const atStart = "is set when the guest starts"

var entryName = regexp.MustCompile(`\[[^\]]*\]`)

// judged returns the field at a path with what its change takes.
func judged(path string) Field {
	plain := entryName.ReplaceAllString(path, "[]")
	for _, n := range needs {
		rest, ok := strings.CutPrefix(plain, n.path)
		if !ok || rest != "" && (strings.HasSuffix(n.path, "[]") || rest[0] != '.' && rest[0] != '[') {
			continue
		}
		if class, ok := cans[n.takes]; ok {
			return Field{path, class, whys[n.takes]}
		}
		return Field{path, Restart, whys[n.takes]}
	}
	return Field{path, Restart, atStart}
}
