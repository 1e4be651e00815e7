package virtctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// maxFile is the most that is read of a VM's file, in bytes; more than the server takes.
const maxFile = 1 << 20

func expandCommand(e *environment) *cobra.Command {
	vm, file, output := "", "", "yaml"
	cmd := &cobra.Command{
		Use:   "expand (--vm VM | --file FILE)",
		Short: "Show a virtual machine in full, with instancetype, preference and defaults",
		Long: "Show a virtual machine in full: what its instancetype, its preference and the defaults say is in its template,\n" +
			"and it refers to nothing any more. Nothing is written: the VM in the cluster or in the file stays as it is.",
		Example: "  " + e.name + " expand --vm web\n  " + e.name + " expand --file web.yaml -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return fmt.Errorf("expand takes no arguments, got %q: name the virtual machine with --vm, or its file with --file", args[0])
			case (vm == "") == (file == ""):
				return errors.New("expand takes one of --vm and --file")
			case output != "yaml" && output != "json":
				return fmt.Errorf("--output %q: must be yaml or json", output)
			}
			full, err := e.expanded(cmd.Context(), vm, file)
			if err != nil {
				return err
			}
			return e.show(full, output)
		},
	}
	cmd.Flags().StringVar(&vm, "vm", "", "name of a virtual machine in the cluster")
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with a virtual machine, YAML or JSON, - for the standard input")
	cmd.Flags().StringVarP(&output, "output", "o", output, "yaml or json")
	return cmd
}

// expanded returns the JSON of the VM that has the name, or else of the one in the file.
func (e *environment) expanded(ctx context.Context, name, file string) (json.RawMessage, error) {
	if name == "" {
		return e.expandedFile(ctx, file)
	}
	server, t, err := e.connect(name)
	if err != nil {
		return nil, err
	}
	if t.kind == kindVMI {
		return nil, fmt.Errorf("expand works on virtual machines: want vm/%s, not a VirtualMachineInstance", t.name)
	}
	answer := server.rest.Get().AbsPath(path(subresources+"/v1", t.namespace, "virtualmachines", t.name, "expand-spec")...).Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, e.verbError(ctx, server, t, "expand", err)
	}
	return answer.Raw()
}

// expandedFile sends the VM in the file, in the namespace that it names or else in the one of the connection.
func (e *environment) expandedFile(ctx context.Context, file string) (json.RawMessage, error) {
	raw, err := e.readFile(file)
	if err != nil {
		return nil, err
	}
	vm := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &vm.Object); err != nil {
		return nil, fmt.Errorf("%s: no Kubernetes object: %w", file, err)
	}
	if vm.GetName() == "" {
		return nil, fmt.Errorf("%s: metadata.name: Required value: the file must hold one VirtualMachine", file)
	}
	arg := kindVM + "/" + vm.GetName()
	if vm.GetNamespace() != "" {
		arg += "/" + vm.GetNamespace()
	}
	server, t, err := e.connect(arg)
	if err != nil {
		return nil, err
	}
	vm.SetNamespace(t.namespace)
	body, err := json.Marshal(vm.Object)
	if err != nil {
		return nil, err
	}
	answer := server.rest.Put().AbsPath(path(subresources+"/v1", t.namespace, "expand-vm-spec")...).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, withCauses(err)
	}
	return answer.Raw()
}

// withCauses adds to an error of the server's what it says of single fields.
func withCauses(err error) error {
	var api apierrors.APIStatus
	if !errors.As(err, &api) || api.Status().Details == nil || len(api.Status().Details.Causes) == 0 {
		return err
	}
	text := err.Error()
	for _, c := range api.Status().Details.Causes {
		text += "\n  " + c.Message
	}
	return hinted(err, "%s", text)
}

func (e *environment) readFile(file string) ([]byte, error) {
	from := e.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("reading the virtual machine: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("larger than %d bytes", maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return raw, nil
}

// show prints a VM's JSON in the format asked for.
func (e *environment) show(full json.RawMessage, output string) error {
	var object any
	if err := json.Unmarshal(full, &object); err != nil {
		return fmt.Errorf("reading the server's answer: %w", err)
	}
	text, err := yaml.Marshal(object)
	if output == "json" {
		text, err = json.MarshalIndent(object, "", "  ")
		text = append(text, '\n')
	}
	if err != nil {
		return err
	}
	_, err = e.Out.Write(text)
	return err
}
