package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
)

// fake is an API server with one Pod and the definitions of two networks.
type fake struct {
	*httptest.Server
	told []status
}

func newFake(t *testing.T, annotations map[string]string) *fake {
	t.Helper()
	f := &fake{}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("GET /api/v1/namespaces/vms/pods/web", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"metadata": map[string]any{"annotations": annotations}})
	})
	mux.HandleFunc("GET /apis/k8s.cni.cncf.io/v1/namespaces/{ns}/network-attachment-definitions/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") == "missing" {
			http.NotFound(w, r)
			return
		}
		config := fmt.Sprintf(`{"cniVersion": "1.0.0", "type": "fake", "of": %q}`, r.PathValue("ns")+"/"+r.PathValue("name"))
		answer(w, map[string]any{"spec": map[string]any{"config": config}})
	})
	mux.HandleFunc("PATCH /api/v1/namespaces/vms/pods/web/status", func(w http.ResponseWriter, r *http.Request) {
		var patch struct {
			Metadata struct{ Annotations map[string]string }
		}
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(raw, &patch)
		}
		if err == nil {
			err = json.Unmarshal([]byte(patch.Metadata.Annotations[statusKey]), &f.told)
		}
		if err != nil {
			t.Errorf("patch %s: %v", raw, err)
		}
		answer(w, map[string]any{})
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// node is a directory with a plugin that notes how it is called, and the arguments of a call for it.
func node(t *testing.T, f *fake) (args *skel.CmdArgs, calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	plugin := `#!/bin/sh
conf=$(cat)
echo "$CNI_COMMAND $CNI_IFNAME $CNI_ARGS" >>` + dir + `/calls
[ "$CNI_COMMAND" = ADD ] && echo '{"cniVersion":"1.0.0","interfaces":[{"name":"'$CNI_IFNAME'","mac":"02:00:5e:00:53:0a","sandbox":"/x"}],"ips":[{"address":"192.168.7.2/24","interface":0}]}'
exit 0
`
	kubeconfig := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: '" + f.URL + "'}}]}"
	for name, content := range map[string]string{"fake": plugin, "kubeconfig": kubeconfig} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CNI_PATH", dir)
	conf := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "cluster", "type": "multinet", "kubeconfig": %q, "cache": %q,
		"delegate": {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "fake"}]}}`, dir+"/kubeconfig", dir+"/cache")
	args = &skel.CmdArgs{ContainerID: "c1", Netns: "/ns", IfName: "eth0", Args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=vms;K8S_POD_NAME=web", StdinData: []byte(conf)}
	return args, func() []string {
		raw, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(raw)), "\n")
	}
}

func TestAPodHasTheNetworksItAsksFor(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		nics        []string
		names       []string
	}{
		"none":      {nil, []string{"eth0"}, []string{"cluster"}},
		"as JSON":   {map[string]string{networksKey: `[{"name":"red","interface":"pod1","mac":"02:00:5e:00:53:0b"},{"name":"blue","namespace":"infra"}]`}, []string{"eth0", "pod1", "net2"}, []string{"cluster", "vms/red", "infra/blue"}},
		"by names":  {map[string]string{networksKey: "red@pod1, infra/blue"}, []string{"eth0", "pod1", "net2"}, []string{"cluster", "vms/red", "infra/blue"}},
		"a default": {map[string]string{defaultKey: "infra/main"}, []string{"eth0"}, []string{"infra/main"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, tc.annotations)
			args, calls := node(t, f)
			if err := add(args); err != nil {
				t.Fatal(err)
			}
			if len(f.told) != len(tc.nics) {
				t.Fatalf("told %+v, want %v", f.told, tc.nics)
			}
			for i, s := range f.told {
				if s.Interface != tc.nics[i] || s.Name != tc.names[i] || s.Default != (i == 0) || s.MAC == "" || len(s.IPs) != 1 {
					t.Errorf("told %+v, want %s as %s", s, tc.names[i], tc.nics[i])
				}
			}
			if err := del(args); err != nil {
				t.Fatal(err)
			}
			if got := len(calls()); got != 2*len(tc.nics) {
				t.Errorf("calls were %q", calls())
			}
			if err := del(args); err != nil {
				t.Errorf("detaching twice: %v", err)
			}
		})
	}
}

func TestTheAskedForMACReachesThePlugin(t *testing.T) {
	f := newFake(t, map[string]string{networksKey: `[{"name":"red","interface":"pod1","mac":"02:00:5e:00:53:0b"}]`})
	args, calls := node(t, f)
	if err := add(args); err != nil {
		t.Fatal(err)
	}
	if got := calls()[1]; !strings.HasPrefix(got, "ADD pod1 ") || !strings.Contains(got, "MAC=02:00:5e:00:53:0b") {
		t.Errorf("called as %q", got)
	}
}

func TestAMissingDefinitionIsNamed(t *testing.T) {
	f := newFake(t, map[string]string{networksKey: "missing"})
	args, _ := node(t, f)
	if err := add(args); err == nil || !strings.Contains(err.Error(), "vms/network-attachment-definitions/missing") {
		t.Errorf("got %v", err)
	}
}
