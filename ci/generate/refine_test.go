package main

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

type props = apiextensions.JSONSchemaProps

func object(fields map[string]props, required ...string) props {
	return props{Type: "object", Properties: fields, Required: required}
}

func list(entry props) props {
	return props{Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &entry}}
}

func named() props {
	return list(object(map[string]props{"name": {Type: "string"}}, "name"))
}

func TestListsOfAMachineAreKeyedWhereverItIs(t *testing.T) {
	machine := object(map[string]props{
		"domain":  object(map[string]props{"devices": object(map[string]props{"disks": named(), "interfaces": named(), "gpus": named()})}),
		"volumes": named(), "networks": named(),
	})
	schema := object(map[string]props{"spec": object(map[string]props{"deep": list(object(map[string]props{"template": machine}))})})
	if err := refine(&schema, kind{}); err != nil {
		t.Fatal(err)
	}
	got := schema.Properties["spec"].Properties["deep"].Items.Schema.Properties["template"]
	devices := got.Properties["domain"].Properties["devices"].Properties
	for name, l := range map[string]props{
		"volumes": got.Properties["volumes"], "networks": got.Properties["networks"],
		"disks": devices["disks"], "interfaces": devices["interfaces"],
	} {
		if l.XListType == nil || *l.XListType != "map" || !slices.Equal(l.XListMapKeys, []string{"name"}) {
			t.Errorf("%s is no map by name: %+v", name, l)
		}
		if most := l.Items.Schema.Properties["name"].MaxLength; most == nil || *most != nameLength {
			t.Errorf("%s: names have no limit", name)
		}
	}
	if devices["gpus"].XListType != nil {
		t.Error("gpus became a map")
	}
}

// Of the fields of a union one is given; a preference may say which one an interface has.
func TestUnions(t *testing.T) {
	for _, u := range unions {
		fields := map[string]props{"name": {Type: "string"}}
		for _, name := range u.names() {
			fields[name] = object(nil)
		}
		for _, prefers := range []bool{false, true} {
			schema := object(map[string]props{"spec": list(object(fields))})
			if err := refine(&schema, kind{Prefers: prefers}); err != nil {
				t.Fatal(err)
			}
			rules, most := schema.Properties["spec"].Items.Schema.XValidations, "== 1"
			if !u.needed || u.preferred && prefers {
				most = "<= 1"
			}
			if len(rules) != 1 || !strings.HasSuffix(rules[0].Rule, most) || strings.Count(rules[0].Rule, "has(self.") != len(u.names()) {
				t.Errorf("%s where a preference may choose (%v): got %+v", u.fields, prefers, rules)
			}
		}
	}
}

func TestStatus(t *testing.T) {
	conditions := list(object(map[string]props{"type": {Type: "string"}, "status": {Type: "string"}}, "status"))
	schema := object(map[string]props{"status": object(map[string]props{
		"conditions": conditions, "observedGeneration": {Type: "integer"},
	})}, "spec", "status")
	if err := refine(&schema, kind{}); err != nil {
		t.Fatal(err)
	}
	status := schema.Properties["status"]
	if status.Default == nil || string(status.Default.Raw) != `{"observedGeneration":-1}` {
		t.Errorf("got default %v", status.Default)
	}
	if !slices.Equal(schema.Required, []string{"spec"}) {
		t.Errorf("status with a default is required: %v", schema.Required)
	}
	entry := status.Properties["conditions"].Items.Schema
	if !slices.Equal(entry.Required, []string{"status", "type"}) {
		t.Errorf("a condition requires %v", entry.Required)
	}
}

func TestRulesNeedTheirField(t *testing.T) {
	schema := object(map[string]props{"spec": {Type: "object"}})
	if err := refine(&schema, kind{Rules: []rule{{Field: "speck", Rule: "true"}}}); err == nil {
		t.Error("a rule on a field that is not there was taken")
	}
}

func TestNumbersFitTheirGoType(t *testing.T) {
	type inner struct {
		Count uint32 `json:"count"`
	}
	type outer struct {
		inner `json:",inline"`
		Many  []*inner           `json:"many"`
		By    map[string]uint    `json:"by"`
		Wait  *metav1.Duration   `json:"wait"`
		Port  intstr.IntOrString `json:"port"`
		Time  metav1.Time        `json:"time"`
		Small int32              `json:"small"`
	}
	integer := props{Type: "integer", Format: "int32"}
	many := list(object(map[string]props{"count": integer}))
	by := props{Type: "object", AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Schema: &props{Type: "integer"}}}
	schema := object(map[string]props{
		"count": integer, "many": many, "by": by, "wait": {Type: "string"}, "port": {XIntOrString: true},
		"time": {Type: "string", Format: "date-time"}, "small": integer,
	})
	fit(&schema, reflect.TypeFor[outer]())
	p := schema.Properties
	for name, got := range map[string]props{"count": p["count"], "many": p["many"].Items.Schema.Properties["count"]} {
		if got.Format != "int64" || *got.Minimum != 0 || *got.Maximum != math.MaxUint32 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got := p["by"].AdditionalProperties.Schema; *got.Minimum != 0 || got.Maximum != nil {
		t.Errorf("by: got %+v", got)
	}
	if !strings.Contains(p["wait"].XValidations[0].Rule, goDuration) || *p["port"].Maximum != math.MaxInt32 {
		t.Errorf("got %+v and %+v", p["wait"], p["port"])
	}
	if !reflect.DeepEqual(p["small"], integer) || p["time"].Pattern != "" {
		t.Errorf("got %+v and %+v", p["small"], p["time"])
	}
}

// A quantity with a long exponent takes Go minutes to read: no schema takes one.
func TestQuantitiesAreReadInNoTime(t *testing.T) {
	files, err := filepath.Glob("../../bundles/crds/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), anyExponent) {
			t.Errorf("%s takes quantities with exponents of any length", file)
		}
	}
	pattern := regexp.MustCompile(`^` + smallExponent + `$`)
	if pattern.MatchString("e-1000000") || !pattern.MatchString("e3") {
		t.Errorf("the pattern %s takes the wrong exponents", pattern)
	}
}

// Whatever the pattern takes, Go reads.
func TestDurations(t *testing.T) {
	pattern := regexp.MustCompile(goDuration)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[0-9.]{0,3}(ns|us|µs|ms|s|m|h|d)?[0-9.]{0,3}(s|m)?`),
			rapid.StringMatching(`([0-9]{1,10}([.][0-9]{1,10})?(ns|us|µs|ms|s|m|h)){1,7}`), rapid.StringMatching(`(9{4,10}h){1,7}`)).Draw(t, "text")
		if _, err := time.ParseDuration(text); err != nil && pattern.MatchString(text) {
			t.Errorf("the pattern takes %q: %v", text, err)
		}
	})
	for _, d := range []time.Duration{0, time.Millisecond, 90 * time.Minute, 36 * time.Hour} {
		if !pattern.MatchString(d.String()) {
			t.Errorf("the pattern refuses %s", d)
		}
	}
}

func TestStaleFilesAreNamed(t *testing.T) {
	old := files{"same": []byte("a"), "changed": []byte("a"), "gone": []byte("a")}
	made := files{"same": []byte("a"), "changed": []byte("b"), "new": []byte("a")}
	if got, want := difference(old, made), []string{"changed", "gone", "new"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
