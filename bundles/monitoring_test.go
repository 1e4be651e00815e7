package bundles_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"virtstack.io/virtstack/controllers/bundle"
	"virtstack.io/virtstack/controllers/tally"
	_ "virtstack.io/virtstack/controllers/vm" // what it registers
)

// registered returns the names of the metrics that our processes register, beside the rules' own.
func registered(t *testing.T) map[string]bool {
	t.Helper()
	shared, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("%T does not describe what is registered", metrics.Registry)
	}
	found := map[string]bool{"up": true} // Prometheus' own
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for _, c := range []prometheus.Collector{shared, &tally.Collector{}, &bundle.Health{}} {
		to := make(chan *prometheus.Desc)
		go func() {
			defer close(to)
			c.Describe(to)
		}()
		for d := range to {
			found[name.FindStringSubmatch(d.String())[1]] = true
		}
	}
	return found
}

// rules returns the rules of bundles/monitoring, each as it is written.
func rules(t *testing.T) (all []map[string]any) {
	t.Helper()
	for _, o := range built(t, "bundles/monitoring") {
		groups, _, _ := unstructured.NestedSlice(o.Object, "spec", "groups")
		for _, g := range groups {
			for _, r := range g.(map[string]any)["rules"].([]any) {
				all = append(all, r.(map[string]any))
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("no rules")
	}
	return all
}

// expressions returns what the dashboard asks for, with its variables filled in.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	raw, err := os.ReadFile("monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, strings.ReplaceAll(target.Expr, "$namespace", ".*"))
		}
	}
	return all
}

// metric matches what can only be the name of a metric: words before a selector, and all with one of our prefixes.
var metric = regexp.MustCompile(`[a-z_:]+(?:\{)|\b(?:kubevirt|virtstack|controller_runtime|workqueue|rest_client)_[a-z_]+`)

// An alert on a metric that nobody exports never fires, and nobody notices.
func TestAlertsAndDashboardAskForWhatIsExported(t *testing.T) {
	known, exprs := registered(t), expressions(t)
	for _, r := range rules(t) {
		exprs = append(exprs, r["expr"].(string))
	}
	for _, e := range exprs {
		names := metric.FindAllString(e, -1)
		if len(names) == 0 {
			t.Errorf("%s: no metric found", e)
		}
		for _, n := range names {
			n = strings.TrimSuffix(n, "{")
			if !known[n] && !known[strings.TrimSuffix(n, "_bucket")] {
				t.Errorf("%s: nobody exports %s", e, n)
			}
		}
	}
}

// Each alert says what it means and where it is written what to do, and that is written.
func TestAlertsHaveRunbooks(t *testing.T) {
	page, err := os.ReadFile("../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t) {
		name, alert := r["alert"].(string)
		if !alert {
			continue
		}
		severity, _, _ := unstructured.NestedString(r, "labels", "severity")
		summary, _, _ := unstructured.NestedString(r, "annotations", "summary")
		url, _, _ := unstructured.NestedString(r, "annotations", "runbook_url")
		if !slices.Contains([]string{"critical", "warning", "info"}, severity) || summary == "" || url != "docs/monitoring.md#"+strings.ToLower(name) {
			t.Errorf("%s: severity %q, summary %q, runbook %q", name, severity, summary, url)
		}
		if !strings.Contains(string(page), "\n### "+name+"\n\n") {
			t.Errorf("docs/monitoring.md has no section %s", name)
		}
	}
}

// The Service selects every Pod of ours, and the monitor the Service, by a port that each has.
func TestEveryComponentIsScraped(t *testing.T) {
	var service, monitor *unstructured.Unstructured
	for _, o := range built(t, "bundles/monitoring") {
		switch o.GetKind() {
		case "Service":
			service = o.Unstructured
		case "ServiceMonitor":
			monitor = o.Unstructured
		}
	}
	wanted, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	for k, v := range wanted {
		if service.GetLabels()[k] != v {
			t.Errorf("the monitor selects %s=%s, the Service has %v", k, v, service.GetLabels())
		}
	}
	selects, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	for _, o := range slices.Concat(built(t, "bundles/operator"), built(t, "bundles/components")) {
		labels, pods, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
		if !pods {
			continue
		}
		for k, v := range selects {
			if labels[k] != v {
				t.Errorf("%s %s is not scraped: its Pods have %v", o.GetKind(), o.GetName(), labels)
			}
		}
		raw, err := o.MarshalJSON()
		if err != nil || !strings.Contains(string(raw), `"name":"metrics"`) {
			t.Errorf("%s %s has no port metrics (%v)", o.GetKind(), o.GetName(), err)
		}
	}
}
