package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// image is an entry of images.json, which ci/images writes.
type image struct {
	Ref string `json:"ref"`
}

// overlay is overlays/dev with the images that were just built, named by content: applying it again after a change
// rolls the components.
const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../overlays/dev]
configurations: [images.yaml]
images:
%s`

// Overlay writes .cluster/overlay and returns its directory.
func (l *Lab) Overlay() (string, error) {
	entries, err := l.images("")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(l.State(), "overlay")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// kustomize reads no file outside a kustomization's own directory.
	fields, err := os.ReadFile(filepath.Join(l.Root, "bundles", "components", "images.yaml"))
	if err != nil {
		return "", err
	}
	return dir, errors.Join(
		os.WriteFile(filepath.Join(dir, "images.yaml"), fields, 0o644),
		os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, overlay, entries), 0o644))
}

// images are the entries of a kustomization for what was built; suffix is "" or that of a later version's names.
func (l *Lab) images(suffix string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(l.State(), "images", "images.json"))
	if err != nil {
		return "", fmt.Errorf("reading what was built (make build): %w", err)
	}
	var built map[string]image
	if err := json.Unmarshal(raw, &built); err != nil {
		return "", err
	}
	var entries strings.Builder
	for _, name := range []string{"virtstack", "virt-launcher"} {
		ref := built[name+suffix].Ref
		at := strings.LastIndex(ref, ":")
		if at < 0 {
			return "", fmt.Errorf("images.json has no reference for %s", name+suffix)
		}
		fmt.Fprintf(&entries, "- {name: %s, newTag: %q}\n", ref[:at], ref[at+1:])
	}
	return entries.String(), nil
}

// Install applies the overlay and the KubeVirt CR and waits until it is Available and up to date.
func (l *Lab) Install(ctx context.Context) error {
	dir, err := l.Overlay()
	if err != nil {
		return err
	}
	if _, err := l.Kubectl(ctx, "apply", "--server-side", "-k", dir); err != nil {
		return err
	}
	for _, d := range []string{"virt-operator", "virt-bundles"} {
		if _, err := l.Kubectl(ctx, "-n", "kubevirt", "rollout", "status", "deployment/"+d, "--timeout=120s"); err != nil {
			return err
		}
	}
	err = Until(ctx, time.Minute, "the KubeVirt CR to be admitted", func(ctx context.Context) (bool, string, error) {
		_, err := l.Kubectl(ctx, "apply", "--server-side", "-f", "overlays/dev/kubevirt.yaml")
		return err == nil, "", err
	})
	if err != nil {
		return err
	}
	return l.Available(ctx, 4*time.Minute)
}

// Available waits until the KubeVirt CR says that what the operator stands for is installed, and all of it is there: it
// says Available of the version before as well, until a new operator has looked at it.
func (l *Lab) Available(ctx context.Context, limit time.Duration) error {
	const image = `jsonpath={.spec.template.spec.containers[0].image}`
	const status = `jsonpath={.metadata.generation} {.status.observedGeneration} {.status.conditions[?(@.type=="Available")].status} {.status.conditions[?(@.type=="Progressing")].status} {.status.observedDeploymentConfig} {.status.phase} {.status.conditions[*].message}`
	return Until(ctx, limit, "KubeVirt to be Available", func(ctx context.Context) (bool, string, error) {
		wanted, err := l.Kubectl(ctx, "-n", "kubevirt", "get", "deployment", "virt-operator", "-o", image)
		if err != nil {
			return false, "", err
		}
		out, err := l.Kubectl(ctx, "-n", "kubevirt", "get", "kubevirt", "kubevirt", "-o", status)
		f := strings.Fields(out)
		ok := len(f) >= 5 && f[0] == f[1] && f[2] == "True" && f[3] == "False" && strings.Contains(f[4], strconv.Quote(wanted))
		return ok, out, err
	})
}
