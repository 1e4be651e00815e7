package debian

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// extract unpacks package files into one tree, a few at a time. No package script is run.
func extract(ctx context.Context, tree string, files []string) error {
	// The links of a merged /usr come first, so that nothing makes directories in their place.
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.MkdirAll(filepath.Join(tree, "usr", dir), 0o755); err != nil {
			return err
		}
		if err := os.Symlink("usr/"+dir, filepath.Join(tree, dir)); err != nil {
			return err
		}
	}
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(4)
	for _, file := range files {
		workers.Go(func() error {
			if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", file, tree).CombinedOutput(); err != nil {
				return fmt.Errorf("extracting %s: %w\n%s", filepath.Base(file), err, out)
			}
			return nil
		})
	}
	return workers.Wait()
}

// describe reads name, version and control file of each package.
func describe(ctx context.Context, files []string) ([]Package, error) {
	var all []Package
	for _, file := range files {
		control, err := exec.CommandContext(ctx, "dpkg-deb", "--field", file).Output()
		if err != nil {
			return nil, fmt.Errorf("reading the control file of %s: %w", filepath.Base(file), err)
		}
		fields := stanzaFields(string(control))
		all = append(all, Package{fields["package"], fields["version"], string(control)})
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// packagesFile is written last: a tree without it is not complete.
const packagesFile = "packages.json"

func writePackages(home string, packages []Package) error {
	data, err := json.MarshalIndent(packages, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, packagesFile), data, 0o644)
}

func readPackages(home string) ([]Package, error) {
	data, err := os.ReadFile(filepath.Join(home, packagesFile))
	if err != nil {
		return nil, err
	}
	var packages []Package
	return packages, json.Unmarshal(data, &packages)
}
