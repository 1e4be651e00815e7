package virtctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	expandWeb  = "GET /apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/web/expand-spec"
	expandFile = "PUT /apis/subresources.kubevirt.io/v1/namespaces/shop/expand-vm-spec"
	webFile    = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: web}\nspec: {nonsense: 1}\n"
)

func TestExpand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte(webFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct{ path, in, out, sent string }{
		"virtctl expand --vm web -n shop":            {expandWeb, "", "kind: VirtualMachine\n", ""},
		"virtctl expand --vm vm/web/shop -o json":    {expandWeb, "", "{\n  \"kind\": \"VirtualMachine\"\n}\n", ""},
		"virtctl expand --file " + file + " -n shop": {expandFile, "", "kind: VirtualMachine\n", `"metadata":{"name":"web","namespace":"shop"},"spec":{"nonsense":1}`},
		"virtctl expand -f -": {expandFile, strings.Replace(webFile, "name: web", "name: web, namespace: shop", 1), "kind: VirtualMachine\n",
			`"metadata":{"name":"web","namespace":"shop"},"spec":{"nonsense":1}`},
	} {
		c := newCluster(t)
		c.answers[want.path] = reply(200, map[string]string{"kind": "VirtualMachine"})
		got := c.virtctl(t, strings.NewReader(want.in), line)
		if got.code != 0 || got.out != want.out || !strings.Contains(c.bodies[want.path], want.sent) {
			t.Errorf("%s: exit code %d, printed %q %q, sent %v; want %+v", line, got.code, got.out, got.err, c.bodies, want)
		}
	}
}

func TestExpandRefusals(t *testing.T) {
	c := newCluster(t)
	c.answers["GET /apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/wbe/expand-spec"] = notFoundVM("wbe")
	c.answers["GET /apis/kubevirt.io/v1/namespaces/default/virtualmachines"] = listOf("web")
	c.answers[expandFile] = refuse(400, metav1.StatusReasonBadRequest, "Object is not a valid VirtualMachine",
		&metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: `unknown field "spec.nonsense"`}}})
	for line, want := range map[string]string{
		"virtctl expand": "expand takes one of --vm and --file",
		"virtctl expand --vm web --file web.yaml": "expand takes one of --vm and --file",
		"virtctl expand web":                      `expand takes no arguments, got "web"`,
		"virtctl expand --vm vmi/web":             "expand works on virtual machines: want vm/web",
		"virtctl expand --vm web -o xml":          `--output "xml": must be yaml or json`,
		"virtctl expand --vm wbe":                 `VirtualMachine "wbe" not found in namespace "default". Did you mean web?`,
		"virtctl expand -f nowhere.yaml":          "reading the virtual machine: open nowhere.yaml",
		"virtctl expand -f - -n shop":             "Object is not a valid VirtualMachine\n  unknown field \"spec.nonsense\"\n",
		"virtctl expand -f - -n mall":             "the server could not find the requested resource",
	} {
		got := c.virtctl(t, strings.NewReader(webFile), line)
		if got.code != 1 || !strings.HasPrefix(got.err, "Error: "+want) || got.out != "" {
			t.Errorf("%s: exit code %d, printed %q, want %q", line, got.code, got.err, want)
		}
	}
	for in, want := range map[string]string{
		"a: b":                       "-: metadata.name: Required value",
		"[":                          "-: no Kubernetes object",
		strings.Repeat(" ", 1<<20+1): "reading -: larger than 1048576 bytes",
	} {
		if got := c.virtctl(t, strings.NewReader(in), "virtctl expand -f -"); got.code != 1 || !strings.HasPrefix(got.err, "Error: "+want) {
			t.Errorf("%.20q: exit code %d, printed %q, want %q", in, got.code, got.err, want)
		}
	}
}
