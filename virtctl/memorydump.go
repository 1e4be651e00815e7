package virtctl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/memorydump"
	"virtstack.io/virtstack/machine/storage"
)

func memoryDumpCommand(e *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory-dump",
		Short: "Dump a guest's memory to a claim",
		Long: "Dump a guest's memory to a claim, as an ELF core. The claim is that of a memoryDump volume in the VM's template;\n" +
			"the VM's status.memoryDumpRequest tells how it goes. The guest stands still meanwhile.",
	}
	cmd.AddCommand(getDumpCommand(e), removeDumpCommand(e), downloadDumpCommand(e))
	return cmd
}

// dumpFlags are those of memory-dump get.
type dumpFlags struct {
	claim, class, mode string
	create             bool
	download           downloadFlags
}

func getDumpCommand(e *environment) *cobra.Command {
	f := dumpFlags{}
	cmd := &cobra.Command{
		Use:     "get VM",
		Short:   "Dump the memory of a virtual machine's guest",
		Example: "  " + e.name + " memory-dump get web --claim-name=dumps\n  " + e.name + " memory-dump get web",
		Args:    one("virtual machine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return e.getDump(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.claim, "claim-name", "", "the PersistentVolumeClaim to write to; none: that of the last dump")
	cmd.Flags().BoolVar(&f.create, "create-claim", false, "make the claim, large enough for the guest's memory")
	cmd.Flags().StringVar(&f.class, "storage-class", "", "the StorageClass of a claim that is made; none: the cluster's")
	cmd.Flags().StringVar(&f.mode, "access-mode", string(k8sv1.ReadWriteOnce), "the access mode of a claim that is made")
	f.download.add(cmd)
	return cmd
}

// check refuses flags that don't go together.
func (f dumpFlags) check() error {
	modes := []string{string(k8sv1.ReadWriteOnce), string(k8sv1.ReadWriteMany), string(k8sv1.ReadWriteOncePod)}
	switch {
	case f.download.asked():
		return errors.New("--output, --port-forward, --local-port, --format: a dump can't be downloaded in this version: see `memory-dump download VM`")
	case f.create && f.claim == "":
		return errors.New("--create-claim needs --claim-name, the name of the claim to make")
	case !f.create && f.class != "":
		return errors.New("--storage-class goes with --create-claim")
	case !slices.Contains(modes, f.mode):
		return fmt.Errorf("--access-mode: Invalid value: %q: must be one of %q", f.mode, modes)
	case !f.create && f.mode != modes[0]:
		return errors.New("--access-mode goes with --create-claim")
	}
	return nil
}

func (e *environment) getDump(ctx context.Context, arg string, f dumpFlags) error {
	server, t, err := e.connectVM(arg, "memory-dump get")
	if err != nil {
		return err
	}
	if f.create {
		if err := e.createClaim(ctx, server, t, f); err != nil {
			return err
		}
	}
	if err := server.put(ctx, t, call{verb: "memorydump", options: map[string]string{"claimName": f.claim}}); err != nil {
		return e.verbError(ctx, server, t, "memory-dump get", err)
	}
	_, err = fmt.Fprintf(e.Out, "A memory dump of VM %s was asked for. How it goes:\n  kubectl get vm %s -n %s -o jsonpath='{.status.memoryDumpRequest}'\n", t.name, t.name, t.namespace)
	return err
}

// connectVM is connect for what VirtualMachines alone have.
func (e *environment) connectVM(arg, command string) (*client, target, error) {
	server, t, err := e.connect(arg)
	if err == nil && t.kind == kindVMI {
		err = fmt.Errorf("%s works on virtual machines: want vm/%s, not a VirtualMachineInstance", command, t.name)
	}
	return server, t, err
}

// createClaim makes a claim for the dumps of a VM that has a volume for it: another VM would have no use for one.
func (e *environment) createClaim(ctx context.Context, server *client, t target, f dumpFlags) error {
	vm, err := server.vm(ctx, t)
	if err != nil {
		return e.verbError(ctx, server, t, "memory-dump get", err)
	}
	if vm.Spec.Template == nil {
		return fmt.Errorf("VM %s has no spec.template", t.name)
	}
	spec := &vm.Spec.Template.Spec
	if why := memorydump.Missing(spec, nil, f.claim); why != "" {
		return fmt.Errorf("--create-claim: %s", why)
	}
	if memorydump.Memory(spec) == 0 { // an instancetype's, which the VMI has
		vmi := &v1.VirtualMachineInstance{}
		if err := server.get(ctx, vmi, path("/apis/kubevirt.io/v1", t.namespace, "virtualmachineinstances", t.name)...); err != nil {
			return hinted(err, "--create-claim: how much memory VM %s has is told by its VMI, which can't be read: %v", t.name, err)
		}
		spec = &vmi.Spec
	}
	size, mode := (memorydump.Needs(spec)+storage.MiB-1)/storage.MiB*storage.MiB, k8sv1.PersistentVolumeFilesystem
	claim := &k8sv1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: f.claim},
	}
	claim.Spec.AccessModes, claim.Spec.VolumeMode = []k8sv1.PersistentVolumeAccessMode{k8sv1.PersistentVolumeAccessMode(f.mode)}, &mode
	claim.Spec.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)}
	if f.class != "" {
		claim.Spec.StorageClassName = &f.class
	}
	err = server.create(ctx, claim, path("/api/v1", t.namespace, "persistentvolumeclaims")...)
	if apierrors.IsAlreadyExists(err) {
		return hinted(err, "--create-claim: PersistentVolumeClaim %s/%s exists: leave --create-claim out to use it", t.namespace, f.claim)
	}
	if err == nil {
		_, err = fmt.Fprintf(e.Out, "PersistentVolumeClaim %s was made, of %s\n", f.claim, claim.Spec.Resources.Requests.Storage())
	}
	return err
}

func removeDumpCommand(e *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "remove VM",
		Short:   "Let a virtual machine's claim take no more memory dumps",
		Long:    "Let a virtual machine's claim take no more memory dumps. One that is being made ends; those on the claim stay.",
		Example: "  " + e.name + " memory-dump remove web",
		Args:    one("virtual machine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, t, err := e.connectVM(args[0], "memory-dump remove")
			if err != nil {
				return err
			}
			if err := server.put(cmd.Context(), t, call{verb: "removememorydump", options: struct{}{}}); err != nil {
				return e.verbError(cmd.Context(), server, t, "memory-dump remove", err)
			}
			_, err = fmt.Fprintf(e.Out, "The claim of VM %s takes no more memory dumps\n", t.name)
			return err
		},
	}
}

// downloadFlags are those with which KubeVirt's virtctl downloads a dump.
type downloadFlags struct {
	output, format, localPort string
	portForward               bool
}

func (f *downloadFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.output, "output", "", "not in this version")
	cmd.Flags().StringVar(&f.format, "format", "", "not in this version")
	cmd.Flags().BoolVar(&f.portForward, "port-forward", false, "not in this version")
	cmd.Flags().StringVar(&f.localPort, "local-port", "", "not in this version")
}

func (f *downloadFlags) asked() bool {
	return f.output != "" || f.format != "" || f.localPort != "" || f.portForward
}

func downloadDumpCommand(e *environment) *cobra.Command {
	f := downloadFlags{}
	cmd := &cobra.Command{
		Use:   "download VM",
		Short: "Say where the last memory dump is, and how to copy it",
		Args:  one("virtual machine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, t, err := e.connectVM(args[0], "memory-dump download")
			if err != nil {
				return err
			}
			vm, err := server.vm(cmd.Context(), t)
			if err != nil {
				return e.verbError(cmd.Context(), server, t, "memory-dump download", err)
			}
			return undownloadable(e.name, t, vm.Status.MemoryDumpRequest)
		},
	}
	f.add(cmd)
	return cmd
}

// undownloadable says how to come by a dump without VirtualMachineExport.
func undownloadable(name string, t target, r *v1.VirtualMachineMemoryDumpRequest) error {
	switch {
	case r == nil:
		return fmt.Errorf("VM %s has no memory dump: ask for one with\n  %s memory-dump get %s -n %s --claim-name=CLAIM", t.name, name, t.name, t.namespace)
	case r.FileName == nil && r.Message != "":
		return fmt.Errorf("VM %s has no memory dump to copy: the last one is %s: %s", t.name, r.Phase, r.Message)
	case r.FileName == nil:
		return fmt.Errorf("VM %s has no memory dump to copy: the last one is %s", t.name, r.Phase)
	}
	return fmt.Errorf("a download takes a VirtualMachineExport, which this version doesn't have.\n"+
		"The dump is file %s on PersistentVolumeClaim %s: mount the claim in a Pod, and copy it with\n  kubectl cp %s/POD:DIRECTORY/%s %s",
		*r.FileName, r.ClaimName, t.namespace, *r.FileName, *r.FileName)
}
