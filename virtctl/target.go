package virtctl

import (
	"fmt"
	"strings"
)

// Kinds of targets.
const (
	kindVM  = "vm"
	kindVMI = "vmi"
)

// target is what a command is about. A bare name has no kind, and a target without a namespace is in the current one.
type target struct{ kind, namespace, name string }

var kinds = map[string]string{
	"vm": kindVM, "vms": kindVM, "virtualmachine": kindVM, "virtualmachines": kindVM,
	"vmi": kindVMI, "vmis": kindVMI, "virtualmachineinstance": kindVMI, "virtualmachineinstances": kindVMI,
}

// resource is that of the target's kind in URLs.
func (t target) resource() string {
	if t.kind == kindVMI {
		return "virtualmachineinstances"
	}
	return "virtualmachines"
}

// parseTarget reads NAME, KIND/NAME and KIND/NAME/NAMESPACE. A dot is part of the name.
func parseTarget(arg string) (target, error) {
	parts := strings.Split(arg, "/")
	for _, p := range parts {
		if p == "" {
			return target{}, fmt.Errorf("target %q: want NAME, vm/NAME or vm/NAME/NAMESPACE", arg)
		}
	}
	if len(parts) == 1 {
		return target{name: arg}, nil
	}
	kind, ok := kinds[strings.ToLower(parts[0])]
	if !ok {
		return target{}, fmt.Errorf("target %q: unknown kind %q: want vm or vmi", arg, parts[0])
	}
	switch len(parts) {
	case 2:
		return target{kind: kind, name: parts[1]}, nil
	case 3:
		return target{kind: kind, name: parts[1], namespace: parts[2]}, nil
	}
	return target{}, fmt.Errorf("target %q: too many slashes: want vm/NAME or vm/NAME/NAMESPACE", arg)
}

// in returns the target in its namespace; the one of the connection counts where the target names none.
func (t target) in(namespace string, explicit bool) (target, error) {
	if t.namespace != "" && explicit && t.namespace != namespace {
		return t, fmt.Errorf("target %s/%s/%s is in another namespace than --namespace %s", t.kind, t.name, t.namespace, namespace)
	}
	if t.namespace == "" {
		t.namespace = namespace
	}
	return t, nil
}
