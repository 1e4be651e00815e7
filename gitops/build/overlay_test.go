package build_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/gitops/build"
)

const (
	pod       = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: 'old:1'}]}\n"
	component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
	settings  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: %s\n"
)

func patches(p ...string) (o build.Overlay) {
	for _, text := range p {
		o.Patches = append(o.Patches, types.Patch{Patch: text})
	}
	return o
}

func images(i ...types.Image) build.Overlay { return build.Overlay{Images: i} }

func components(c ...string) build.Overlay { return build.Overlay{Components: c} }

func with(v build.Variables) build.Overlay { return build.Overlay{Variables: v} }

func values(kv ...string) build.Overlay {
	v := build.Variables{Values: map[string]string{}}
	for i := 0; i < len(kv); i += 2 {
		v.Values[kv[i]] = kv[i+1]
	}
	return with(v)
}

// What is laid over a kustomization does what Flux does with the fields of the same names.
func TestOverlays(t *testing.T) {
	withTwo := []string{"k/kustomization.yaml", "resources: [p.yaml]\nimages: [{name: old, newName: new, newTag: '2'}]\n", "k/p.yaml", pod}
	withComponent := []string{"k/p.yaml", pod, "parts/c/kustomization.yaml", component + "namePrefix: c-\n"}
	plain := func(a string) []string { return []string{"k/m.yaml", fmt.Sprintf(settings, a)} }
	for name, tc := range map[string]struct {
		files []string
		over  build.Overlay
		want  string // in the objects as YAML
	}{
		"nothing":                    {plain("b"), build.Overlay{}, "name: m"},
		"prefix, suffix, namespace":  {plain("b"), build.Overlay{NamePrefix: "a-", NameSuffix: "-z", Namespace: "ns"}, "name: a-m-z\n  namespace: ns"},
		"a patch":                    {plain("b"), patches("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {a: c}}"), "a: c"},
		"an image":                   {[]string{"k/p.yaml", pod}, images(types.Image{Name: "old", NewTag: "3"}), "image: old:3"},
		"an image over an image":     {withTwo, images(types.Image{Name: "old", NewTag: "3"}), "image: new:3"},
		"a name over an image":       {withTwo, images(types.Image{Name: "old", NewName: "other"}), "image: other:2"},
		"a digest takes the tag":     {withTwo, images(types.Image{Name: "old", Digest: "sha256:0123"}), "image: new@sha256:0123"},
		"a component":                {withComponent, components("../parts/c"), "name: c-p"},
		"a component that is away":   {withComponent, build.Overlay{Components: []string{"gone", "../parts/c"}, IgnoreMissingComponents: true}, "name: c-p"},
		"a variable":                 {plain("${who}"), values("who", "me"), "a: me"},
		"a number stays one":         {plain("x\nbinaryData: {}\nimmutable: ${yes}"), values("yes", "true"), "immutable: true"},
		"a default":                  {plain("${who:=me}"), values("x", "y"), "a: me"},
		"without a value":            {plain("'${who}'"), values("x", "y"), "a: null"},
		"without any value":          {plain("${who:=me}"), build.Overlay{}, "a: ${who:=me}"},
		"always":                     {plain("${who:=me}"), with(build.Variables{Always: true}), "a: me"},
		"a character in each":        {[]string{"k/m.yaml", fmt.Sprintf(settings, "${who//-/_}") + "  b: ${where:=http://${who}/}\n"}, values("who", "m-e"), "a: m_e"},
		"escaped":                    {plain("$${who}"), values("who", "me"), "a: ${who}"},
		"a part of it":               {plain("${who:0:1}"), values("who", "me"), "a: m"},
		"strict, with a default":     {plain("${who:-me}"), with(build.Variables{Always: true, Strict: true}), "a: me"},
		"a variable in a name":       {[]string{"k/m.yaml", strings.Replace(fmt.Sprintf(settings, "b"), "name: m", "name: '${who}-m'", 1)}, values("who", "me"), "name: me-m"},
		"by a label it is left":      {[]string{"k/m.yaml", exempt("labels")}, values("who", "me"), "a: ${who}"},
		"by an annotation it is too": {[]string{"k/m.yaml", exempt("annotations")}, values("who", "me"), "a: ${who}"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := build.Overlaid(t.Context(), files(tc.files...), "k", build.DefaultLimits, tc.over)
			if err != nil || len(all) != 1 {
				t.Fatalf("got %v, %v", all, err)
			}
			text, err := yaml.Marshal(all[0].Object)
			if err != nil || !strings.Contains(string(text), tc.want) {
				t.Errorf("got\n%s (%v), want %q in it", text, err, tc.want)
			}
		})
	}
}

func exempt(by string) string {
	return strings.Replace(fmt.Sprintf(settings, "${who}"), "name: m", "name: m, "+by+": {kustomize.toolkit.fluxcd.io/substitute: disabled}", 1)
}

func TestRefusedOverlaysNameTheField(t *testing.T) {
	plain := files("k/m.yaml", fmt.Sprintf(settings, "${who}"))
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i < 'k'; i++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*%c, ", i-1), 9))
	}
	secret := with(build.Variables{Values: map[string]string{"who": "*canary-1"}, Secrets: []string{"*canary-1"}})
	for name, tc := range map[string]struct {
		files fs.FS
		over  build.Overlay
		want  string
	}{
		"a patch that is no YAML":      {plain, patches("{}", "a: [x"), "spec.patches[1]: yaml: line 1"},
		"a patch that is a bomb":       {plain, patches(bomb), "spec.patches[0]: more than 1048576 values, aliases expanded"},
		"the same in the repository":   {files("k/kustomization.yaml", "patches: [{patch: '{b: {a: *x}}'}]\n"), build.Overlay{}, "k/kustomization.yaml: patches[0]: yaml: line 1: an alias"},
		"a patch of what isn't there":  {plain, patches("{apiVersion: v1, kind: ConfigMap, metadata: {name: gone}}"), "no matches for Id ConfigMap.v1.[noGrp]/gone.[noNs]"},
		"a component that is away":     {plain, components("gone"), `spec.components[0]: "gone" is not in the commit`},
		"a component that leads out":   {plain, build.Overlay{Components: []string{"../../etc"}, IgnoreMissingComponents: true}, `spec.components[0]: "../../etc" leads out`},
		"a component that is remote":   {plain, build.Overlay{Components: []string{"github.com/org/repo"}, IgnoreMissingComponents: true}, `spec.components[0]: "github.com/org/repo" is remote`},
		"a variable that is missing":   {plain, with(build.Variables{Always: true, Strict: true}), `ConfigMap m (k/m.yaml): spec.postBuild: variable "who" has no value: name it in substitute or substituteFrom, or write ${who:=default}`},
		"a name that is none":          {plain, values("a-b", "c"), "'a-b' var name is invalid"},
		"a variable that breaks it":    {plain, values("who", "[x"), "ConfigMap m (k/m.yaml): spec.postBuild: "},
		"one that is secret":           {plain, secret, "values that may be secret"},
		"variables that never end":     {files("k/m.yaml", fmt.Sprintf(settings, strings.Repeat("${who}", 5000))), values("who", strings.Repeat("x", 10000)), "5000 variables of up to 10000 bytes may make more than"},
		"one that multiplies":          {files("k/m.yaml", fmt.Sprintf(settings, "${who//x/"+strings.Repeat("y", 10000)+"}")), values("who", strings.Repeat("x", 10000)), "may make more than"},
		"a variable for each byte":     {files("k/m.yaml", fmt.Sprintf(settings, "${who//x/${who}}")), values("who", strings.Repeat("x", 20000)), "may make more than"},
		"an encrypted file":            {files("k/s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: x, version: 3.9.0}\n"), build.Overlay{}, "k/s.yaml: it is encrypted with SOPS"},
		"an encrypted file of a patch": {files("k/kustomization.yaml", "resources: [m.yaml]\npatches: [{path: p.yaml}]\n", "k/m.yaml", pod, "k/p.yaml", pod+"sops: {mac: x}\n"), build.Overlay{}, "k/p.yaml: it is encrypted with SOPS"},
		"an encrypted env file":        {files("k/kustomization.yaml", "secretGenerator: [{name: s, envs: [s.env]}]\n", "k/s.env", "a=ENC[AES256_GCM,data:x,type:str]\nsops_mac=x\n"), build.Overlay{}, "k/s.env: it is encrypted with SOPS"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := build.Overlaid(t.Context(), tc.files, "k", build.DefaultLimits, tc.over)
			if !errors.Is(err, build.ErrRefused) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}
