package virtctl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	v1 "kubevirt.io/api/core/v1"
)

// causeCommit is the type of the status cause whose message is the line to commit; virt-api sets it.
const causeCommit metav1.CauseType = "CommitInstead"

// explain turns an error into what the user reads: what is wrong, and what to do about it.
func explain(err error, name string) string {
	if !isHint(err) {
		err = cause(err)
	}
	text := err.Error()
	var api apierrors.APIStatus
	switch {
	case isHint(err):
	case unreachable(err):
		text += "\nThe API server can't be reached: check --kubeconfig, --context and `kubectl cluster-info`."
	case !errors.As(err, &api):
	case api.Status().Code == 503:
		text += "\nvirt-api does not answer. Look at:\n" +
			"  kubectl get apiservice v1." + v1.SubresourceGroupName + "\n" +
			"  kubectl -n kubevirt get pods -l kubevirt.io=virt-api"
	case apierrors.IsUnauthorized(err):
		text += "\nThe cluster doesn't know your credentials: check the kubeconfig's user."
	case apierrors.IsNotFound(err) && (api.Status().Details == nil || api.Status().Details.Name == ""):
		text += "\nvirtstack seems not to be installed there, or is another release than this " + name + ". Look at:\n" +
			"  kubectl get kubevirts -A"
	case apierrors.IsForbidden(err):
		text += "\nThe ClusterRoles kubevirt.io:edit and kubevirt.io:admin grant it; ask for a RoleBinding to one of them."
	}
	return text
}

// cause is the server's answer where a stream was refused.
func cause(err error) error {
	var upgrade *httpstream.UpgradeFailureError
	if errors.As(err, &upgrade) {
		return upgrade.Cause
	}
	return err
}

func unreachable(err error) bool {
	var u *url.Error
	var op *net.OpError
	return errors.As(err, &u) || errors.As(err, &op)
}

// verbError explains why a verb of a VM was refused, with what the cluster says about that VM.
func (e *environment) verbError(ctx context.Context, c *client, t target, verb string, err error) error {
	var api apierrors.APIStatus
	if !errors.As(err, &api) || api.Status().Details == nil {
		return err
	}
	if line := fromGit(api.Status()); line != "" {
		return hinted(err, "%s\nOr set it aside for a while, spec left alone:\n  %s %s %s -n %s --override --for 2h --reason \"...\"", line, e.name, verb, t.name, t.namespace)
	}
	if d := api.Status().Details; apierrors.IsNotFound(err) && d.Name == t.name && strings.HasPrefix(d.Kind, "virtualmachine") {
		return e.notFound(ctx, c, t, api.Status().Details.Kind, err)
	}
	if !apierrors.IsConflict(err) || verb == "start" || t.kind == kindVMI {
		return err
	}
	vm, again := c.vm(ctx, t)
	if again != nil || vm.Status.PrintableStatus == "" {
		return err
	}
	return hinted(err, "%v\nVM %s is %s.%s", err, t.name, vm.Status.PrintableStatus, e.startHint(t, vm))
}

// startHint says how to start a VM that is stopped.
func (e *environment) startHint(t target, vm *v1.VirtualMachine) string {
	if vm.Status.PrintableStatus != v1.VirtualMachineStatusStopped {
		return ""
	}
	return fmt.Sprintf(" Start it with: %s start %s -n %s", e.name, t.name, t.namespace)
}

// fromGit renders the refusal to write what Git owns; empty if that isn't it.
func fromGit(s metav1.Status) string {
	owner, field, line := "", "", ""
	for _, cause := range s.Details.Causes {
		switch cause.Type {
		case metav1.CauseTypeFieldManagerConflict:
			owner = cause.Message
		case causeCommit:
			field, line = cause.Field, cause.Message
		}
	}
	if line == "" {
		return ""
	}
	return fmt.Sprintf("%s of VirtualMachine %q comes from Git, applied by %s.\nCommit this change there instead:\n  spec:\n    %s",
		field, s.Details.Name, owner, line)
}

// notFound names what the user may have meant.
func (e *environment) notFound(ctx context.Context, c *client, t target, kind string, err error) error {
	if kind == "virtualmachineinstance" && t.kind != kindVMI {
		if vm, reading := c.vm(ctx, t); reading == nil {
			return hinted(err, "VM %s has no instance: it is %s.%s", t.name, vm.Status.PrintableStatus, e.startHint(t, vm))
		}
	}
	what, resource := "VirtualMachine", "virtualmachines"
	if kind == "virtualmachineinstance" && t.kind == kindVMI {
		what, resource = "VirtualMachineInstance", t.resource()
	}
	text := fmt.Sprintf("%s %q not found in namespace %q.", what, t.name, t.namespace)
	names, listing := c.names(ctx, t.namespace, resource)
	switch alike := near(t.name, names); {
	case listing != nil:
	case len(names) == 0:
		text += " There is none in that namespace; use -n for another."
	case len(alike) > 0:
		text += " Did you mean " + strings.Join(alike, " or ") + "?"
	default:
		text += fmt.Sprintf(" There are: %s", strings.Join(names[:min(10, len(names))], ", "))
	}
	return hinted(err, "%s", text)
}
