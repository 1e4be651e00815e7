package validate_test

import (
	"strings"
	"testing"

	"virtstack.io/virtstack/machine/validate"
)

// A template's labels and annotations become those of objects, and what Kubernetes would refuse there is refused here.
func TestMetadataOfATemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		over string
		want []string
	}{
		"all well":       {`{labels: {example.test/a: b, empty: ""}, annotations: {example.test/note: "any text"}}`, nil},
		"label key":      {`{labels: {"a b": c}}`, []string{"/spec.template.metadata.labels "}},
		"label value":    {`{labels: {a: ` + strings.Repeat("x", 64) + `}}`, []string{"/spec.template.metadata.labels must be no more than 63"}},
		"annotation key": {`{annotations: {"a b": c}}`, []string{"/spec.template.metadata.annotations "}},
		"both":           {`{labels: {"b b": c, "a a": c}}`, []string{"/spec.template.metadata.labels ", "/spec.template.metadata.labels "}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, validate.VM(parse(t, `{spec: {template: {metadata: `+tc.over+`}}}`)), tc.want)
		})
	}
}

func TestNodesAndGrace(t *testing.T) {
	tables{
		"a node's label":     {`nodeSelector: {disk: fast}`, nil},
		"no node's label":    {`nodeSelector: {"a b": "c"}`, []string{"nodeSelector "}},
		"the longest grace":  {`terminationGracePeriodSeconds: 2147483647`, nil},
		"no number of ns":    {`terminationGracePeriodSeconds: 9007199254740992`, []string{"terminationGracePeriodSeconds must be from 0 to 2147483647 seconds"}},
		"less than no grace": {`terminationGracePeriodSeconds: -1`, []string{"terminationGracePeriodSeconds must be from 0 to"}},
		"a disk too large":   {`volumes: [{name: root, emptyDisk: {capacity: 7Ei}}]`, []string{"volumes[0].emptyDisk.capacity must be at most 1Pi"}},
	}.run(t)
}
