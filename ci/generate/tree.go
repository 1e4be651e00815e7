package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// owned are the patterns of generated files; a file that matches and is no longer made is stale.
var owned = []string{
	"api/*/zz_generated.deepcopy.go",
	"api/*/*/*.pb.go",
	crdDirectory + "/*.yaml",
	mergeKeysFile,
}

// committed reads the generated files that are there.
func committed() (files, error) {
	found := files{}
	for _, pattern := range owned {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", pattern, err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("reading what is committed: %w", err)
			}
			found[path] = content
		}
	}
	return found, nil
}

// write makes the tree agree with made at the given paths: a path that is not in made is removed.
func write(paths []string, made files) error {
	for _, path := range paths {
		content, ok := made[path]
		if !ok {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("removing what is no longer generated: %w", err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the directory of %s: %w", path, err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		fmt.Println("wrote", path)
	}
	return nil
}

// readTree returns the files beneath a directory, with prefix before their names.
func readTree(dir, prefix string) (files, error) {
	found := files{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		found[filepath.Join(prefix, name)] = content
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading generated files: %w", err)
	}
	return found, nil
}
