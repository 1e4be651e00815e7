package cloudinit_test

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/cloudinit"
)

// Public keys are in the metadata of either seed, whatever is in them; without any there is no field of them.
func TestPublicKeys(t *testing.T) {
	awkward := "ssh-ed25519 AAA <\"me\\\"> : # grüße"
	for _, keys := range [][]string{nil, {awkward}, {awkward, "ssh-rsa BBB"}} {
		machine := web
		machine.Keys = keys
		noCloud, err1 := cloudinit.NoCloud(&v1.CloudInitNoCloudSource{UserData: "u"}, nil, machine)
		drive, err2 := cloudinit.ConfigDrive(&v1.CloudInitConfigDriveSource{UserData: "u"}, nil, machine)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		var byYAML, byJSON struct {
			Dashed     map[string]string `json:"public-keys"`
			Underlined map[string]string `json:"public_keys"`
		}
		raw := read(t, image(t, noCloud), "meta-data")
		if err := yaml.Unmarshal([]byte(raw), &byYAML); err != nil || strings.Contains(raw, "public-keys") != (len(keys) > 0) {
			t.Errorf("meta-data %q: %v", raw, err)
		}
		raw = read(t, image(t, drive), "openstack/latest/meta_data.json")
		if err := json.Unmarshal([]byte(raw), &byJSON); err != nil || strings.Contains(raw, "public_keys") != (len(keys) > 0) {
			t.Errorf("meta_data.json %q: %v", raw, err)
		}
		for i, key := range keys {
			number := string(rune('0' + i))
			if byYAML.Dashed[number] != key || byJSON.Underlined[number] != key {
				t.Errorf("key %d is %q and %q, want %q", i, byYAML.Dashed[number], byJSON.Underlined[number], key)
			}
		}
	}
}
