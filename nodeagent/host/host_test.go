package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	caps = `<capabilities><host><cpu><counter name='tsc' frequency='2600000000' scaling='yes'/></cpu></host></capabilities>`
	kvm  = `<domainCapabilities><domain>kvm</domain></domainCapabilities>`
	qemu = `<domainCapabilities><domain>qemu</domain></domainCapabilities>`
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func probe() fstest.MapFS {
	return fstest.MapFS{"capabilities.xml": file(caps), "domcapabilities-qemu.xml": file(qemu), "cache/a.xml": file("<a/>")}
}

func TestTheAcceleratorDecidesWhatGuestsMayHave(t *testing.T) {
	withKVM := probe()
	withKVM["domcapabilities-kvm.xml"] = file(kvm)
	device := fstest.MapFS{"dev/kvm": file("")}
	for name, tc := range map[string]struct {
		root, probe fstest.MapFS
		kvm         bool
		domain      string
	}{
		"KVM":                             {device, withKVM, true, "kvm"},
		"no KVM":                          {fstest.MapFS{}, probe(), false, "qemu"},
		"KVM that the probe had no right": {device, probe(), true, "qemu"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Read(tc.root, tc.probe)
			if err != nil {
				t.Fatal(err)
			}
			if f.KVM != tc.kvm || f.Domain(false).Domain != tc.domain || f.Domain(true).Domain != "qemu" || string(f.Cache["a.xml"]) != "<a/>" || f.Host.Host.CPU.Counter.Frequency != 2600000000 {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestRealtimeNeedsAllOfACPUsTime(t *testing.T) {
	for limit, want := range map[string]bool{"-1\n": true, "950000\n": false} {
		f, err := Read(fstest.MapFS{"proc/sys/kernel/sched_rt_runtime_us": file(limit)}, probe())
		if err != nil || f.Realtime != want {
			t.Errorf("%q: got %v, %v", limit, f.Realtime, err)
		}
	}
}

func TestABrokenProbeIsNamed(t *testing.T) {
	for name, tc := range map[string]struct{ file, content, want string }{
		"not XML":   {"capabilities.xml", "{}", "capabilities.xml"},
		"too large": {"domcapabilities-qemu.xml", strings.Repeat("x", maxFile+1), "more than"},
		"cache":     {"cache/b.xml", strings.Repeat("x", maxCache), "capability cache"},
	} {
		t.Run(name, func(t *testing.T) {
			p := probe()
			p[tc.file] = file(tc.content)
			if _, err := Read(fstest.MapFS{}, p); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want one that says %q", err, tc.want)
			}
		})
	}
}

// S11: the probe's container is another image; a link in its directory leads nowhere.
func TestALinkOutOfTheProbesDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(caps), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "capabilities.xml")); err != nil {
		t.Fatal(err)
	}
	p, err := Probe(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(fstest.MapFS{}, p); err == nil {
		t.Error("the link was followed")
	}
}

func TestAKubeletThatGivesWholeCPUs(t *testing.T) {
	for state, want := range map[string]bool{
		`{"policyName":"static","defaultCpuSet":"0,4-7","entries":{"pod":{"compute":"1-3"}},"checksum":4}`: true,
		`{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`:                                   false,
		`{`: false,
		"":  false,
	} {
		dir := fstest.MapFS{}
		if state != "" {
			dir["cpu_manager_state"] = &fstest.MapFile{Data: []byte(state)}
		}
		if got := StaticCPUs(dir); got != want {
			t.Errorf("%s: got %v", state, got)
		}
	}
}
