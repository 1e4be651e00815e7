package build_test

import (
	"io/fs"
	"strings"
	"testing"

	"virtstack.io/virtstack/gitops/build"
)

// What Secrets are made of reaches no error: errors become conditions, events and logs (threat G5).
func TestErrorsDoNotQuoteSecrets(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
	kustomized := func(k string, more ...string) fs.FS {
		return files(append([]string{"k/kustomization.yaml", k}, more...)...)
	}
	for name, tc := range map[string]fs.FS{
		"an env file that is no text":  kustomized("secretGenerator: [{name: s, envs: [s.env]}]\n", "k/s.env", "a=b\ncanary-1=canary-2\xff\n"),
		"a literal without a key":      kustomized("secretGenerator: [{name: s, literals: [canary-1]}]\n"),
		"a literal with a bad key":     kustomized("secretGenerator: [{name: s, literals: ['=canary-1']}]\n"),
		"a key that is there twice":    kustomized("secretGenerator: [{name: s, literals: [a=canary-1, a=canary-2]}]\n"),
		"a Secret that is there twice": files("k/a.yaml", secret+"stringData: {p: canary-1}\n", "k/b.yaml", secret+"stringData: {p: canary-2}\n"),
		"an alias that was a password": files("k/a.yaml", secret+"stringData: {p: *canary-1}\n"),
		"a patch that is no patch":     kustomized("resources: [s.yaml]\npatches: [{target: {kind: Secret}, patch: 'canary-1: [x'}]\n", "k/s.yaml", secret),
		"a patch of another":           kustomized("resources: [s.yaml]\npatches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: t}, stringData: {p: canary-1}}'}]\n", "k/s.yaml", secret),
		"an operation that fails": kustomized("resources: [s.yaml]\npatches: [{target: {kind: Secret}, patch: '[{op: test, path: /stringData/p, value: canary-1}]'}]\n", "k/s.yaml",
			secret+"stringData: {p: canary-2}\n"),
	} {
		_, err := build.Objects(t.Context(), tc, "k", build.DefaultLimits)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
