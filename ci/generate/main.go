// generate writes the files of this repository that are made from others: deep copies and custom resource
// definitions from Go types, Go from protobuf. RBAC is not among them: it is written by hand, next to the
// component that needs it, where a reviewer sees every verb.
//
//	go run ./ci/generate          writes them
//	go run ./ci/generate --check  compares instead, names what is stale and ends with 1
//
// It needs protoc (Debian: protobuf-compiler, libprotobuf-dev) and runs at the root of the module.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
)

// files maps paths, relative to the root of the module, to contents.
type files map[string][]byte

func main() {
	check := flag.Bool("check", false, "compare with what is committed instead of writing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	if _, err := os.Stat("go.mod"); err != nil {
		return fmt.Errorf("looking for the root of the module: %w", err)
	}
	made := files{}
	for _, step := range []func() (files, error){deepCopies, definitions, protobuf} {
		some, err := step()
		if err != nil {
			return err
		}
		maps.Copy(made, some)
	}
	keys, err := mergeKeys(made)
	if err != nil {
		return err
	}
	maps.Copy(made, keys)
	old, err := committed()
	if err != nil {
		return err
	}
	stale := difference(old, made)
	if !check {
		return write(stale, made)
	}
	for _, path := range stale {
		fmt.Println("stale:", path)
	}
	if len(stale) > 0 {
		return fmt.Errorf("%d generated files are stale: run make generate and commit the result", len(stale))
	}
	return nil
}

// difference returns, sorted, the paths whose content is not the same in both.
func difference(old, made files) []string {
	var paths []string
	for path, content := range made {
		if was, ok := old[path]; !ok || string(was) != string(content) {
			paths = append(paths, path)
		}
	}
	for path := range old {
		if _, ok := made[path]; !ok {
			paths = append(paths, path)
		}
	}
	return slices.Sorted(slices.Values(paths))
}
