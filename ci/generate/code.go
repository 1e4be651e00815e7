package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
)

const (
	ownTypes = "api/v1alpha1"
	protoDir = "api/guest/v1"
)

// deepCopies generates the DeepCopy methods of our own kinds.
func deepCopies() (files, error) {
	dir, err := os.MkdirTemp("", "generate-deepcopy-")
	if err != nil {
		return nil, fmt.Errorf("generating deep copies: %w", err)
	}
	defer os.RemoveAll(dir)
	var generator genall.Generator = deepcopy.Generator{}
	generators := genall.Generators{&generator}
	runtime, err := generators.ForRoots("./" + ownTypes)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", ownTypes, err)
	}
	runtime.OutputRules = genall.OutputRules{Default: genall.OutputToDirectory(dir)}
	if failed := runtime.Run(); failed {
		return nil, errors.New("generating deep copies: see the errors above")
	}
	return readTree(dir, ownTypes)
}

// protobuf generates messages and services from the protocol of node agents and launchers.
func protobuf() (files, error) {
	dir, err := os.MkdirTemp("", "generate-protobuf-")
	if err != nil {
		return nil, fmt.Errorf("generating protobuf: %w", err)
	}
	defer os.RemoveAll(dir)
	plugins, out := filepath.Join(dir, "plugins"), filepath.Join(dir, "out")
	if err := errors.Join(os.Mkdir(plugins, 0o755), os.Mkdir(out, 0o755)); err != nil {
		return nil, fmt.Errorf("generating protobuf: %w", err)
	}
	if err := command("go", "build", "-o", plugins+"/",
		"google.golang.org/protobuf/cmd/protoc-gen-go",
		"google.golang.org/grpc/cmd/protoc-gen-go-grpc"); err != nil {
		return nil, err
	}
	sources, err := filepath.Glob(protoDir + "/*.proto")
	if err != nil {
		return nil, fmt.Errorf("listing protobuf sources: %w", err)
	}
	arguments := append([]string{
		"--plugin=" + filepath.Join(plugins, "protoc-gen-go"),
		"--plugin=" + filepath.Join(plugins, "protoc-gen-go-grpc"),
		"--go_out=" + out, "--go_opt=paths=source_relative",
		"--go-grpc_out=" + out, "--go-grpc_opt=paths=source_relative",
	}, sources...)
	if err := command("protoc", arguments...); err != nil {
		return nil, err
	}
	return readTree(out, "")
}

func command(name string, arguments ...string) error {
	var output bytes.Buffer
	cmd := exec.Command(name, arguments...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s: %w\n%s", name, err, output.String())
	}
	return nil
}
