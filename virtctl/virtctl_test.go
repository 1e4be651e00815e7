package virtctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/kube/buildid"
	"virtstack.io/virtstack/machine/release"
)

// cluster is an API server of a test: answers by "METHOD path", and what it was sent.
type cluster struct {
	*httptest.Server
	answers map[string]http.HandlerFunc
	bodies  map[string]string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{answers: map[string]http.HandlerFunc{}, bodies: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + r.URL.Path
		body, _ := io.ReadAll(r.Body)
		if r.URL.RawQuery != "" {
			body = append([]byte(r.URL.RawQuery+" "), body...)
		}
		c.bodies[key] = string(body)
		answer, ok := c.answers[key]
		if !ok {
			http.Error(w, "404 page not found", http.StatusNotFound)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

func reply(code int, v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if v != nil {
			_ = json.NewEncoder(w).Encode(v)
		}
	}
}

func refuse(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) http.HandlerFunc {
	return reply(int(code), metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: "Failure", Code: code, Reason: reason, Message: message, Details: details})
}

func notFoundVM(name string) http.HandlerFunc {
	return refuse(404, metav1.StatusReasonNotFound, fmt.Sprintf("virtualmachine.kubevirt.io %q not found", name),
		&metav1.StatusDetails{Group: "kubevirt.io", Kind: "virtualmachine", Name: name})
}

func listOf(names ...string) http.HandlerFunc {
	list := metav1.PartialObjectMetadataList{}
	for _, n := range names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	return reply(200, list)
}

// result is what a run of virtctl left.
type result struct {
	code     int
	out, err string
}

// virtctl runs a command line against the cluster, called by the name that it starts with.
func (c *cluster) virtctl(t *testing.T, in io.Reader, line string) result {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	args := append(strings.Fields(line), "--server="+c.URL)
	if strings.HasPrefix(line, "kubectl-virt") {
		args[0] = "/usr/local/bin/kubectl-virt"
	}
	var out, errOut bytes.Buffer
	code := Run(t.Context(), genericiooptions.IOStreams{In: in, Out: &out, ErrOut: &errOut}, args)
	return result{code, out.String(), errOut.String()}
}

func verbPath(ns, name, verb string) string {
	return "PUT /apis/subresources.kubevirt.io/v1/namespaces/" + ns + "/virtualmachines/" + name + "/" + verb
}

func instancePath(ns, name, verb string) string {
	return strings.Replace(verbPath(ns, name, verb), "/virtualmachines/", "/virtualmachineinstances/", 1)
}

func TestVerbs(t *testing.T) {
	for line, want := range map[string]struct{ path, body, out string }{
		"virtctl start web":                                    {verbPath("default", "web", "start"), `{}`, "VM web was scheduled to start\n"},
		"virtctl start web -n shop --paused":                   {verbPath("shop", "web", "start"), `{"paused":true}`, "VM web was scheduled to start\n"},
		"virtctl start vm/web/shop --dry-run":                  {verbPath("shop", "web", "start"), `{"dryRun":["All"]}`, "Dry Run execution\nVM web was scheduled to start\n"},
		"virtctl stop vm/db.primary -n cases":                  {verbPath("cases", "db.primary", "stop"), `{}`, "VM db.primary was scheduled to stop\n"},
		"virtctl stop db.primary":                              {verbPath("default", "db.primary", "stop"), `{}`, "VM db.primary was scheduled to stop\n"},
		"virtctl stop web --override --for 2h --reason moved":  {verbPath("default", "web", "stop"), `for=2h0m0s&override=true&reason=moved {}`, "VM web was scheduled to stop\n"},
		"virtctl stop web --grace-period 9":                    {verbPath("default", "web", "stop"), `{"gracePeriod":9}`, "VM web was scheduled to stop\n"},
		"virtctl stop web --force --grace-period=0":            {verbPath("default", "web", "stop"), `{"gracePeriod":0}`, "VM web was scheduled to stop\n"},
		"virtctl restart web":                                  {verbPath("default", "web", "restart"), `{}`, "VM web was scheduled to restart\n"},
		"virtctl restart web --force":                          {verbPath("default", "web", "restart"), `{"gracePeriodSeconds":0}`, "VM web was scheduled to restart\n"},
		"kubectl-virt restart VirtualMachine/web/shop -n shop": {verbPath("shop", "web", "restart"), `{}`, "VM web was scheduled to restart\n"},
		"virtctl pause vm web":                                 {instancePath("default", "web", "pause"), `{}`, "VMI web was scheduled to pause\n"},
		"virtctl pause web --dry-run":                          {instancePath("default", "web", "pause"), `{"dryRun":["All"]}`, "Dry Run execution\nVMI web was scheduled to pause\n"},
		"virtctl unpause vmi web -n shop":                      {instancePath("shop", "web", "unpause"), `{}`, "VMI web was scheduled to unpause\n"},
		"kubectl-virt unpause vmi/web/shop":                    {instancePath("shop", "web", "unpause"), `{}`, "VMI web was scheduled to unpause\n"},
	} {
		c := newCluster(t)
		c.answers[want.path] = reply(202, nil)
		got := c.virtctl(t, nil, line)
		if got.code != 0 || got.out != want.out || c.bodies[want.path] != want.body {
			t.Errorf("%s: exit code %d, printed %q %q, sent %v; want %+v", line, got.code, got.out, got.err, c.bodies, want)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	c := newCluster(t)
	for line, want := range map[string]string{
		"virtctl start":                             "virtctl start takes one argument, the virtual machine, and got 0 (see virtctl start --help)",
		"kubectl-virt stop a b":                     "kubectl virt stop takes one argument, the virtual machine, and got 2 (see kubectl virt stop --help)",
		"virtctl start pod/web":                     `target "pod/web": unknown kind "pod": want vm or vmi`,
		"virtctl start vm/web/a/b":                  `target "vm/web/a/b": too many slashes: want vm/NAME or vm/NAME/NAMESPACE`,
		"virtctl start vm/":                         `target "vm/": want NAME, vm/NAME or vm/NAME/NAMESPACE`,
		"virtctl start vm/web/shop -n other":        "target vm/web/shop is in another namespace than --namespace other",
		"virtctl start vmi/web":                     "start works on virtual machines: want vm/web, not a VirtualMachineInstance",
		"virtctl stop web --force --grace-period 5": "--force leaves the guest no time: it goes with --grace-period=0, not 5",
		"virtctl stop web --grace-period=-7":        "--grace-period: Invalid value: -7: must be at least 0",
		"virtctl stop web --override --reason x":    `--for: Invalid value: "0s": --override must say how long it holds, such as --for 2h`,
		"virtctl start web --override --for 2h":     "--reason: Required value: --override must say why",
		"virtctl start web --for 2h":                "--for and --reason go with --override",
		"virtctl restart web --grace-period 5":      "--grace-period: Invalid value: 5: restart knows only 0, which turns the guest off at once",
		"virtctl pause":                             "virtctl pause takes vm or vmi and a name, and got 0 arguments (see virtctl pause --help)",
		"virtctl pause pod web":                     `target "pod/web": unknown kind "pod": want vm or vmi`,
		"virtctl stopp web":                         `unknown command "stopp" for "virtctl"`,
	} {
		got := c.virtctl(t, nil, line)
		if got.code != 1 || !strings.HasPrefix(got.err, "Error: "+want) || got.out != "" {
			t.Errorf("%s: exit code %d, printed %q, want %q", line, got.code, got.err, want)
		}
	}
	if len(c.bodies) != 0 {
		t.Errorf("the server was asked: %v", c.bodies)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	start, stop := verbPath("default", "wbe", "start"), verbPath("default", "web", "stop")
	pause := instancePath("default", "web", "pause")
	vms := "GET /apis/kubevirt.io/v1/namespaces/default/virtualmachines"
	for name, tc := range map[string]struct {
		line    string
		answers map[string]http.HandlerFunc
		want    string
	}{
		"a name near": {"virtctl start wbe", map[string]http.HandlerFunc{start: notFoundVM("wbe"), vms: listOf("db", "web")},
			"Error: VirtualMachine \"wbe\" not found in namespace \"default\". Did you mean web?\n"},
		"other names": {"virtctl start wbe", map[string]http.HandlerFunc{start: notFoundVM("wbe"), vms: listOf("mail", "database")},
			"Error: VirtualMachine \"wbe\" not found in namespace \"default\". There are: mail, database\n"},
		"no names": {"virtctl start wbe", map[string]http.HandlerFunc{start: notFoundVM("wbe"), vms: listOf()},
			"Error: VirtualMachine \"wbe\" not found in namespace \"default\". There is none in that namespace; use -n for another.\n"},
		"names that may not be listed": {"virtctl start wbe", map[string]http.HandlerFunc{start: notFoundVM("wbe"), vms: refuse(403, metav1.StatusReasonForbidden, "no", nil)},
			"Error: VirtualMachine \"wbe\" not found in namespace \"default\".\n"},
		"from Git": {"virtctl stop web", map[string]http.HandlerFunc{stop: refuse(409, metav1.StatusReasonConflict, "long text", &metav1.StatusDetails{Name: "web", Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldManagerConflict, Field: "spec.runStrategy", Message: "virt-bundles from Bundle team/vms"},
			{Type: "CommitInstead", Field: "spec.runStrategy", Message: "runStrategy: Halted"}}})},
			"Error: spec.runStrategy of VirtualMachine \"web\" comes from Git, applied by virt-bundles from Bundle team/vms.\nCommit this change there instead:\n  spec:\n    runStrategy: Halted\n" +
				"Or set it aside for a while, spec left alone:\n  virtctl stop web -n default --override --for 2h --reason \"...\"\n"},
		"not running": {"virtctl stop web", map[string]http.HandlerFunc{
			stop:         refuse(409, metav1.StatusReasonConflict, "VM is not running", &metav1.StatusDetails{Name: "web"}),
			vms + "/web": reply(200, map[string]any{"status": map[string]any{"printableStatus": "Stopped"}})},
			"Error: VM is not running\nVM web is Stopped. Start it with: virtctl start web -n default\n"},
		"no VMI": {"virtctl pause vm web", map[string]http.HandlerFunc{
			pause:        refuse(404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Kind: "virtualmachineinstance", Name: "web"}),
			vms + "/web": reply(200, map[string]any{"status": map[string]any{"printableStatus": "Stopped"}})},
			"Error: VM web has no instance: it is Stopped. Start it with: virtctl start web -n default\n"},
		"no such VMI": {"virtctl pause vmi web", map[string]http.HandlerFunc{
			pause: refuse(404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Kind: "virtualmachineinstance", Name: "web"}),
			strings.Replace(vms, "/virtualmachines", "/virtualmachineinstances", 1): listOf("wed")},
			"Error: VirtualMachineInstance \"web\" not found in namespace \"default\". Did you mean wed?\n"},
		"paused already": {"virtctl pause vmi web", map[string]http.HandlerFunc{
			pause: refuse(409, metav1.StatusReasonConflict, "VMI is already paused", &metav1.StatusDetails{Name: "web"})},
			"Error: VMI is already paused\n"},
		"forbidden": {"virtctl stop web", map[string]http.HandlerFunc{stop: refuse(403, metav1.StatusReasonForbidden, "no", &metav1.StatusDetails{Name: "web"})},
			"Error: no\nThe ClusterRoles kubevirt.io:edit and kubevirt.io:admin grant it; ask for a RoleBinding to one of them.\n"},
		"virt-api is away": {"virtctl stop web", map[string]http.HandlerFunc{stop: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		}}, "virt-api does not answer. Look at:\n  kubectl get apiservice v1.subresources.kubevirt.io\n"},
		"not installed": {"kubectl-virt stop web", nil, "virtstack seems not to be installed there, or is another release than this kubectl virt. Look at:\n  kubectl get kubevirts -A\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			for k, v := range tc.answers {
				c.answers[k] = v
			}
			got := c.virtctl(t, nil, tc.line)
			exact := strings.HasPrefix(tc.want, "Error: ")
			if got.code != 1 || exact && got.err != tc.want || !strings.Contains(got.err, tc.want) {
				t.Errorf("exit code %d, printed\n%s\nwant\n%s", got.code, got.err, tc.want)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	c := newCluster(t)
	c.Close()
	got := c.virtctl(t, nil, "virtctl stop web")
	if got.code != 1 || !strings.Contains(got.err, "The API server can't be reached: check --kubeconfig") {
		t.Errorf("exit code %d, printed %q", got.code, got.err)
	}
}

func TestVersion(t *testing.T) {
	c := newCluster(t)
	c.answers["GET /apis/subresources.kubevirt.io"] = reply(200, metav1.APIGroup{PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: "subresources.kubevirt.io/v1alpha3"}})
	c.answers["GET /apis/subresources.kubevirt.io/v1alpha3/version"] = reply(200, map[string]string{
		"gitVersion": "v9.8.7+0123456789ab", "gitCommit": "c0ffee", "gitTreeState": "dirty", "buildDate": "2026-01-02T03:04:05Z", "goVersion": "go1", "platform": "linux/arm64"})
	got := c.virtctl(t, nil, "virtctl version")
	if got.code != 0 || !strings.Contains(got.out, "Server Version: v9.8.7+0123456789ab, commit c0ffee and changes that aren't committed, of 2026-01-02T03:04:05Z, go1, linux/arm64\n") || !strings.Contains(got.err, "use a client of the server's release") {
		t.Errorf("%+v", got)
	}
	got = c.virtctl(t, nil, "virtctl version --client")
	if got.code != 0 || !strings.HasPrefix(got.out, "Client Version: "+release.Version+"+"+buildid.Own()+", ") || strings.Contains(got.out, "Server") {
		t.Errorf("%+v", got)
	}
}

func TestPluginIsCalledAsTyped(t *testing.T) {
	c := newCluster(t)
	for line, want := range map[string]string{
		"kubectl-virt console --help": "kubectl virt console VMI",
		"kubectl-virt --help":         "kubectl virt [command]",
		"virtctl console --help":      "virtctl console VMI",
	} {
		if got := c.virtctl(t, nil, line); got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}

func TestNear(t *testing.T) {
	for typed, want := range map[string]string{"wbe": "web", "db": "db2", "frontnd": "frontend", "mial": "mail", "zzz": "", "Web": "web"} {
		if got := strings.Join(near(typed, []string{"web", "db2", "frontend", "mail", "mai", "unrelated-name"}), " "); got != want {
			t.Errorf("near %q: %q, want %q", typed, got, want)
		}
	}
}
