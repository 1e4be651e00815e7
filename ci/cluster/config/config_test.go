package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/ci/cluster/layout"
)

func rendered(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := Node(layout.Dir("/src").Node(2))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFilesParse(t *testing.T) {
	files := rendered(t)
	audit, err := Audit()
	if err != nil {
		t.Fatal(err)
	}
	files["audit.yaml"] = audit
	for name, raw := range files {
		var into map[string]any
		switch {
		case strings.HasSuffix(name, ".toml"):
			err = toml.Unmarshal(raw, &into)
		case strings.HasSuffix(name, ".conflist"):
			err = json.Unmarshal(raw, &into)
		default:
			err = yaml.UnmarshalStrict(raw, &into)
		}
		if err != nil || len(into) == 0 {
			t.Errorf("%s: %v:\n%s", name, err, raw)
		}
	}
}

func TestPodsGetAddressesOfTheirNode(t *testing.T) {
	conf := string(rendered(t)["10-bridge.conflist"])
	if !strings.Contains(conf, `"subnet": "10.244.2.0/24"`) {
		t.Errorf("got %s, want the range of node2", conf)
	}
}

func TestContainersMayUseDevicesAsTheirUser(t *testing.T) {
	var got struct {
		Plugins map[string]map[string]any
	}
	if err := toml.Unmarshal(rendered(t)["containerd.toml"], &got); err != nil {
		t.Fatal(err)
	}
	runtime := got.Plugins["io.containerd.cri.v1.runtime"]
	for _, key := range []string{"restrict_oom_score_adj", "device_ownership_from_security_context"} {
		if runtime[key] != true {
			t.Errorf("%s is %v, want true", key, runtime[key])
		}
	}
}
