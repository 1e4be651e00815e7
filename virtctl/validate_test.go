package virtctl

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const goodVM = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  runStrategy: Halted
  template:
    spec:
      domain:
        memory: {guest: 128Mi}
        devices: {}
`

// judged runs validate in a directory of files.
func judged(t *testing.T, files map[string]string, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	return ran(t, "validate", files, stdin, args...)
}

// ran runs a command in a directory of files.
func ran(t *testing.T, verb string, files map[string]string, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var o, e bytes.Buffer
	code = Run(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &o, ErrOut: &e}, append([]string{"virtctl", verb}, args...))
	return code, o.String(), e.String()
}

func TestValidate(t *testing.T) {
	bad := strings.Replace(goodVM, "128Mi", `"0"`, 1)
	disk := strings.Replace(goodVM, "devices: {}", "devices: {}\n      volumes: [{name: d, hostDisk: {path: /d/x.img, type: Disk}}]", 1)
	kv := "apiVersion: kubevirt.io/v1\nkind: KubeVirt\nmetadata: {name: kubevirt, namespace: kubevirt, annotations: {virtstack.io/host-disk-directories: /d}}\nspec: {configuration: {developerConfiguration: {featureGates: [HostDisk]}}}\n"
	for name, tc := range map[string]struct {
		files map[string]string
		stdin string
		args  []string
		code  int
		out   []string
	}{
		"good":         {files: map[string]string{"a.yaml": goodVM}, args: []string{"-f", "a.yaml"}},
		"stdin":        {stdin: bad, args: []string{"-f", "-"}, code: 1, out: []string{"stdin:9: VirtualMachine web: spec.template.spec.domain.memory.guest: Invalid value: \"0\": must be more than 0"}},
		"second":       {files: map[string]string{"a.yaml": "# first\n" + goodVM + "---\n" + bad}, args: []string{"-f", "a.yaml"}, code: 1, out: []string{"a.yaml:21: VirtualMachine"}},
		"directory":    {files: map[string]string{"d/a.yaml": goodVM, "d/e/b.yml": bad, "d/notes.txt": "x"}, args: []string{"-f", "d"}, code: 1, out: []string{"d/e/b.yml:9: "}},
		"unknown":      {files: map[string]string{"a.yaml": strings.Replace(goodVM, "runStrategy", "runStrategie", 1)}, args: []string{"-f", "a.yaml"}, code: 1, out: []string{"a.yaml:5: VirtualMachine web: spec.runStrategie: Forbidden: unknown field"}},
		"twice":        {files: map[string]string{"a.yaml": "---\n" + goodVM + "spec: {}\n"}, args: []string{"-f", "a.yaml"}, code: 1, out: []string{"line 12", `"spec" already set`}},
		"no object":    {files: map[string]string{"a.yaml": "a: b\n"}, args: []string{"-f", "a.yaml"}, code: 1, out: []string{"a.yaml:1: no Kubernetes object"}},
		"list":         {stdin: `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a"}, "spec": {"running": true, "template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}}}}]}`, args: []string{"-f", "-"}, out: []string{"warning: spec.running is deprecated"}},
		"other kinds":  {stdin: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", args: []string{"-f", "-"}},
		"other kind":   {stdin: "apiVersion: kubevirt.io/v1\nkind: VirtualMachin\nmetadata: {name: a}\n", args: []string{"-f", "-"}, code: 1, out: []string{"kind: Invalid value"}},
		"old version":  {stdin: "apiVersion: kubevirt.io/v2\nkind: VirtualMachine\nmetadata: {name: a}\n", args: []string{"-f", "-"}, code: 1, out: []string{`apiVersion: Unsupported value: "kubevirt.io/v2": supported values: "kubevirt.io/v1"`}},
		"gate off":     {stdin: disk, args: []string{"-f", "-"}, code: 1, out: []string{"stdin:11: ", "feature gate HostDisk"}},
		"gate on":      {files: map[string]string{"kv.yaml": kv}, stdin: disk, args: []string{"-f", "-", "-f", "kv.yaml"}},
		"kustomize":    {files: map[string]string{"k/kustomization.yaml": "namePrefix: x-\nresources: [a.yaml]\n", "k/a.yaml": bad}, args: []string{"-k", "k"}, code: 1, out: []string{"a.yaml: VirtualMachine x-web: spec.template.spec.domain.memory.guest"}},
		"remote":       {files: map[string]string{"k/kustomization.yaml": "resources: [https://git.example/a]\n"}, args: []string{"-k", "k"}, code: 2},
		"nothing":      {code: 2},
		"no such file": {args: []string{"-f", "gone.yaml"}, code: 2},
		"no such flag": {args: []string{"--server"}, code: 2},
		"argument":     {args: []string{"a.yaml"}, code: 2},
		"odd output":   {stdin: goodVM, args: []string{"-f", "-", "-o", "xml"}, code: 2},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := judged(t, tc.files, tc.stdin, tc.args...)
			if code != tc.code {
				t.Errorf("got code %d, want %d:\n%s%s", code, tc.code, out, errOut)
			}
			if len(tc.out) == 0 && out != "" {
				t.Errorf("got %s", out)
			}
			for _, want := range tc.out {
				if !strings.Contains(out, want) {
					t.Errorf("got %s\nwant %s", out, want)
				}
			}
		})
	}
}

func TestValidateAsJSON(t *testing.T) {
	code, out, _ := judged(t, nil, strings.Replace(goodVM, "128Mi", `"0"`, 1), "-f", "-", "-o", "json")
	r := report{}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 {
		t.Fatalf("code %d: %v: %s", code, err, out)
	}
	want := finding{File: "stdin", Line: 9, Object: "VirtualMachine web", Field: "spec.template.spec.domain.memory.guest",
		Value: "0", Message: `Invalid value: "0": must be more than 0, such as 2Gi`}
	if r.Objects != 1 || len(r.Findings) != 1 || r.Findings[0] != want {
		t.Errorf("got %+v\nwant %+v", r, want)
	}
}
