// Package promql reads what bundles/monitoring tells Prometheus and Grafana with Prometheus' own parser. It is a module of
// its own, so that Prometheus is no requirement of the product.
package promql

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

const monitoring = "../../bundles/monitoring/"

func read(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(monitoring + name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// rules returns what the Prometheus operator makes of a PrometheusRule: its spec is a rule file.
func rules(t *testing.T, raw []byte) []byte {
	t.Helper()
	var o struct{ Spec map[string]any }
	if err := yaml.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	file, err := yaml.Marshal(o.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// check reads a rule file as Prometheus does: expressions, durations, names, and the templates of annotations.
func check(file []byte) (*rulefmt.RuleGroups, error) {
	groups, errs := rulefmt.Parse(file, false, model.LegacyValidation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
	return groups, errors.Join(errs...)
}

func TestPrometheusTakesTheRules(t *testing.T) {
	groups, err := check(rules(t, read(t, "rules.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if len(groups.Groups) == 0 {
		t.Error("no group was read")
	}
}

// Each of these could be written by mistake; that it is refused shows that the check reads what it is given.
func TestPrometheusRefusesWrongRules(t *testing.T) {
	raw := string(read(t, "rules.yaml"))
	for right, wrong := range map[string]string{
		"virtstack_vm_stalled == 1": "virtstack_vm_stalled = 1",
		"sum by (controller) (":     "sum by controller (",
		"[5m])) > 0.2":              ")) > 0.2", // a rate of no range
		"for: 15m":                  "for: 15 minutes",
		"{{ $labels.pod }}":         "{{ $labels.pod }",
	} {
		if !strings.Contains(raw, right) {
			t.Errorf("no rule has %q", right)
		}
		if _, err := check(rules(t, []byte(strings.ReplaceAll(raw, right, wrong)))); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func TestPrometheusTakesTheDashboardsExpressions(t *testing.T) {
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	p, read := parser.NewParser(parser.Options{}), 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			// Grafana puts the chosen namespaces in place of its variable.
			if _, err := p.ParseExpr(strings.ReplaceAll(target.Expr, "$namespace", "team-a|team-b")); err != nil {
				t.Errorf("panel %q: %s: %v", panel.Title, target.Expr, err)
			}
			read++
		}
	}
	if read == 0 {
		t.Error("no expression was read")
	}
}
