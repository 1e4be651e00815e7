package plan

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"libvirt.org/go/libvirtxml"

	"virtstack.io/virtstack/nodeagent/host"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const domainCaps = `<domainCapabilities><cpu>
<mode name='host-passthrough' supported='yes'/>
<mode name='host-model' supported='yes'><model fallback='forbid'>Skylake-Server</model><vendor>Intel</vendor>
<feature policy='require' name='vmx'/><feature policy='disable' name='mpx'/></mode>
<mode name='custom' supported='yes'><model usable='yes'>Skylake-Server</model><model usable='no'>EPYC</model><model usable='yes'>qemu64</model>
<model usable='yes'>not a label</model></mode>
</cpu><features><hyperv supported='yes'><enum name='features'><value>relaxed</value><value>stimer</value><value>evmcs</value></enum></hyperv></features></domainCapabilities>`

const emulatedCaps = `<domainCapabilities><cpu>
<mode name='custom' supported='yes'><model usable='yes'>qemu64</model></mode>
</cpu><features><hyperv supported='yes'><enum name='features'><value>relaxed</value></enum></hyperv></features></domainCapabilities>`

const caps = `<capabilities><host><cpu><arch>x86_64</arch><counter name='tsc' frequency='2600000000' scaling='no'/></cpu></host>
<guest><os_type>hvm</os_type><arch name='i686'><machine>pc-q35-9.0</machine></arch></guest>
<guest><os_type>hvm</os_type><arch name='x86_64'><machine canonical='pc-q35-10.0'>q35</machine><machine>pc-q35-10.0</machine><machine>microvm</machine><machine>pc-i440fx-10.0</machine></arch></guest></capabilities>`

func facts(t testing.TB) host.Facts {
	t.Helper()
	f := host.Facts{KVM: true, Realtime: true, Accelerated: &libvirtxml.DomainCaps{}}
	if err := errors.Join(f.Accelerated.Unmarshal(domainCaps), f.Emulated.Unmarshal(emulatedCaps)); err != nil {
		t.Fatal(err)
	}
	if err := f.Host.Unmarshal(caps); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWhatANodeCanDoIsOnItsLabels(t *testing.T) {
	want := map[string]string{
		"cpu-model.node.kubevirt.io/Skylake-Server":           "true",
		"cpu-model-migration.node.kubevirt.io/Skylake-Server": "true",
		"cpu-model-migration.node.kubevirt.io/EPYC":           "true",
		"host-model-cpu.node.kubevirt.io/Skylake-Server":      "true",
		"host-model-required-features.node.kubevirt.io/vmx":   "true",
		"cpu-feature.node.kubevirt.io/vmx":                    "true",
		"cpu-vendor.node.kubevirt.io/Intel":                   "true",
		"cpu-timer.node.kubevirt.io/tsc-frequency":            "2600000000",
		"cpu-timer.node.kubevirt.io/tsc-scalable":             "false",
		"hyperv.node.kubevirt.io/base":                        "true",
		"hyperv.node.kubevirt.io/synictimer":                  "true",
		"hyperv.node.kubevirt.io/time":                        "true",
		"machine-type.node.kubevirt.io/q35":                   "true",
		"machine-type.node.kubevirt.io/pc-q35-10.0":           "true",
		"kubevirt.io/realtime":                                "true",
	}
	if d := cmp.Diff(want, Labels(facts(t), false, map[string]bool{"qemu64": true})); d != "" {
		t.Error(d)
	}
	obsolete := Labels(facts(t), false, map[string]bool{"Skylake-Server": true})
	if obsolete["node-labeller.kubevirt.io/obsolete-host-model"] != "true" {
		t.Errorf("an obsolete host model is not told: %v", obsolete)
	}
}

// Where guests are emulated although there is KVM, and where KVM could not be asked, a CPU that only KVM gives is not told.
func TestLabelsTellOfTheCPUsThatGuestsGet(t *testing.T) {
	unasked := facts(t)
	unasked.Accelerated = nil
	for name, got := range map[string]map[string]string{"emulated": Labels(facts(t), true, nil), "not asked": Labels(unasked, false, nil)} {
		if got["cpu-model.node.kubevirt.io/qemu64"] != "true" || got["cpu-model.node.kubevirt.io/Skylake-Server"] != "" {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got := Labels(facts(t), true, nil); got["hyperv.node.kubevirt.io/base"] != "" {
		t.Errorf("an emulated guest is promised enlightenments: %v", got)
	}
}

func FuzzLabelsAreValid(f *testing.F) {
	f.Add(domainCaps, caps)
	f.Add(`<domainCapabilities><cpu/></domainCapabilities>`, `<capabilities/>`)
	f.Fuzz(func(t *testing.T, d, c string) {
		facts := host.Facts{KVM: true, Accelerated: &libvirtxml.DomainCaps{}}
		if facts.Accelerated.Unmarshal(d) != nil || facts.Host.Unmarshal(c) != nil {
			return
		}
		for k, v := range Labels(facts, false, nil) {
			if len(validation.IsQualifiedName(k)) > 0 || len(validation.IsValidLabelValue(v)) > 0 {
				t.Errorf("%q=%q is no label", k, v)
			}
		}
	})
}

func node(labels, annotations map[string]string) *k8sv1.Node {
	n := &k8sv1.Node{}
	n.Labels, n.Annotations = labels, annotations
	return n
}

// written applies a plan as the API server would.
func written(n *k8sv1.Node, p Plan) *k8sv1.Node {
	n = n.DeepCopy()
	for from, to := range map[*map[string]*string]*map[string]string{&p.Labels: &n.Labels, &p.Annotations: &n.Annotations} {
		if *to == nil {
			*to = map[string]string{}
		}
		for k, v := range *from {
			if delete(*to, k); v != nil {
				(*to)[k] = *v
			}
		}
	}
	return n
}

func TestANodeIsWrittenOnceAndThenOnlyBeats(t *testing.T) {
	s := Seen{Node: node(map[string]string{"cpu-model.node.kubevirt.io/Gone": "true", "zone": "a"}, nil), Serving: true, Facts: facts(t)}
	first := For(now, s)
	s.Node = written(s.Node, first)
	if s.Node.Labels["kubevirt.io/schedulable"] != "true" || s.Node.Labels["zone"] != "a" || s.Node.Labels["cpu-model.node.kubevirt.io/Gone"] != "" {
		t.Errorf("labels are %v", s.Node.Labels)
	}
	soon := For(now.Add(59*time.Second), s)
	if patch, err := soon.Patch("uid"); patch != nil || err != nil || !soon.Recheck.Equal(now.Add(Interval)) {
		t.Errorf("within the interval: %s, %v, again at %v", patch, err, soon.Recheck)
	}
	later := For(now.Add(61*time.Second), s)
	if len(later.Labels) != 0 || later.Annotations["kubevirt.io/heartbeat"] == nil {
		t.Errorf("after the interval: %+v", later)
	}
	patch, err := later.Patch("uid")
	if want := `{"metadata":{"annotations":{"kubevirt.io/heartbeat":"\"2026-05-01T12:01:01Z\""},"labels":{},"uid":"uid"}}`; string(patch) != want || err != nil {
		t.Errorf("got %s, want %s", patch, want)
	}
}

func TestANodeIsScheduledToOnlyWhileItServesDevices(t *testing.T) {
	s := Seen{Node: node(map[string]string{"kubevirt.io/schedulable": "true"}, nil)}
	if got := For(now, s).Labels["kubevirt.io/schedulable"]; got == nil || *got != "false" {
		t.Errorf("got %v", got)
	}
}

func TestANodeThatGivesWholeCPUsSaysSo(t *testing.T) {
	for _, static := range []bool{true, false} {
		p := For(now, Seen{Node: node(map[string]string{"cpumanager": "maybe"}, nil), Facts: facts(t), StaticCPUs: static})
		for _, key := range []string{"kubevirt.io/cpumanager", "cpumanager"} {
			if got := p.Labels[key]; got == nil || *got != strconv.FormatBool(static) {
				t.Errorf("%s is %v, want %v", key, got, static)
			}
		}
	}
}

func TestALabelTakenAwayComesBack(t *testing.T) {
	s := Seen{Node: node(nil, nil), Serving: true, Facts: facts(t)}
	s.Node = written(s.Node, For(now, s))
	for key := range s.Node.Labels {
		n := s.Node.DeepCopy()
		delete(n.Labels, key)
		if p := For(now, Seen{Node: n, Serving: true, Facts: s.Facts}); p.Labels[key] == nil {
			t.Errorf("%s stays away", key)
		}
	}
}

func TestAnAdministratorMayLabelByHand(t *testing.T) {
	s := Seen{Node: node(map[string]string{"cpu-model.node.kubevirt.io/Mine": "true"}, map[string]string{skipLabels: ""}), Serving: true, Facts: facts(t)}
	var keys []string
	for k := range For(now, s).Labels {
		keys = append(keys, k)
	}
	if slices.Sort(keys); strings.Join(keys, " ") != "kubevirt.io/schedulable" {
		t.Errorf("writes %v", keys)
	}
}

func TestAnUnreadableOrFutureHeartbeatIsWrittenAnew(t *testing.T) {
	future, _ := json.Marshal(now.Add(time.Hour).Format(time.RFC3339))
	for _, beat := range []string{"", "yesterday", `"yesterday"`, string(future)} {
		s := Seen{Node: node(map[string]string{"kubevirt.io/schedulable": "true"}, map[string]string{"kubevirt.io/heartbeat": beat}), Serving: true, Facts: host.Facts{Host: libvirtxml.Caps{}}}
		if p := For(now, s); p.Annotations["kubevirt.io/heartbeat"] == nil {
			t.Errorf("%q stays", beat)
		}
	}
}
