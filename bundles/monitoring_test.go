package bundles_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"virtstack.io/virtstack/controllers/bundle"
	"virtstack.io/virtstack/controllers/tally"
	_ "virtstack.io/virtstack/controllers/vm" // what it registers
	"virtstack.io/virtstack/gitops/build"
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

// one returns the only object of a kind in a directory.
func one(t *testing.T, dir, kind string) map[string]any {
	t.Helper()
	var found []map[string]any
	for _, o := range built(t, dir) {
		if o.GetKind() == kind {
			found = append(found, o.Object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d of kind %s", dir, len(found), kind)
	}
	return found[0]
}

// into reads a field of an object.
func into(t *testing.T, object map[string]any, to any, path ...string) {
	t.Helper()
	field, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil || !found {
		t.Fatalf("%v: found %t, %v", path, found, err)
	}
	raw, err := json.Marshal(field)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatal(err)
	}
}

// The monitor selects the Service and one of its ports, which leads to the port metrics; and it speaks what the components
// serve there, which is HTTP without certificates.
func TestMonitorAsksThePortOfMetrics(t *testing.T) {
	service, monitor := one(t, "bundles/monitoring", "Service"), one(t, "bundles/monitoring", "ServiceMonitor")
	var wanted, has map[string]string
	into(t, monitor, &wanted, "spec", "selector", "matchLabels")
	into(t, service, &has, "metadata", "labels")
	for k, v := range wanted {
		if has[k] != v {
			t.Errorf("the monitor selects %s=%s, the Service has %v", k, v, has)
		}
	}
	var endpoints []map[string]any
	into(t, monitor, &endpoints, "spec", "endpoints")
	var ports []struct{ Name, TargetPort string }
	into(t, service, &ports, "spec", "ports")
	if len(endpoints) != 1 || len(ports) != 1 || endpoints[0]["port"] != ports[0].Name || ports[0].TargetPort != "metrics" {
		t.Errorf("endpoints %v, ports %v", endpoints, ports)
	}
	if _, tls := endpoints[0]["tlsConfig"]; tls || endpoints[0]["scheme"] != nil || endpoints[0]["honorLabels"] != true {
		t.Errorf("endpoint %v: want plain HTTP, and the labels of the series kept", endpoints[0])
	}
}

// components are the workloads of the install, as the production overlay and the operator make them.
func components(t *testing.T) (all []build.Object) {
	t.Helper()
	for _, o := range slices.Concat(built(t, "overlays/production"), built(t, "bundles/components")) {
		if _, pods, _ := unstructured.NestedMap(o.Object, "spec", "template"); pods {
			all = append(all, o)
		}
	}
	if len(all) < 5 {
		t.Fatalf("%d components: want virt-operator, virt-bundles, virt-api, virt-controller, virt-handler", len(all))
	}
	return all
}

// The Service selects every Pod of ours, by a port that each has.
func TestEveryComponentIsScraped(t *testing.T) {
	var selects map[string]string
	into(t, one(t, "bundles/monitoring", "Service"), &selects, "spec", "selector")
	for _, o := range components(t) {
		var labels map[string]string
		into(t, o.Object, &labels, "spec", "template", "metadata", "labels")
		for k, v := range selects {
			if labels[k] != v {
				t.Errorf("%s %s is not scraped: its Pods have %v", o.GetKind(), o.GetName(), labels)
			}
		}
		var containers []struct {
			Command, Args []string
			Ports         []struct{ Name string }
		}
		into(t, o.Object, &containers, "spec", "template", "spec", "containers")
		named := 0
		for _, c := range containers {
			named += strings.Count(fmt.Sprint(c.Ports), "{metrics}")
			if strings.Contains(strings.Join(slices.Concat(c.Command, c.Args), " "), "metrics-bind-address") {
				t.Errorf("%s %s moves or turns off its metrics: %v %v", o.GetKind(), o.GetName(), c.Command, c.Args)
			}
		}
		if named != 1 {
			t.Errorf("%s %s has %d ports metrics", o.GetKind(), o.GetName(), named)
		}
	}
}

// In production nothing is reached but what is listed: of the metrics of every Pod, by namespaces with the label that
// docs/monitoring.md names.
func TestProductionLetsPrometheusScrape(t *testing.T) {
	opened := 0
	for _, o := range built(t, "overlays/production") {
		if o.GetKind() != "NetworkPolicy" || o.GetNamespace() != "kubevirt" {
			continue
		}
		var policy networkingv1.NetworkPolicySpec
		into(t, o.Object, &policy, "spec")
		for _, rule := range policy.Ingress {
			if !slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port != nil && p.Port.String() == "metrics" }) {
				continue
			}
			opened++
			if len(policy.PodSelector.MatchLabels)+len(policy.PodSelector.MatchExpressions) > 0 {
				t.Errorf("%s opens the metrics of some Pods only: %v", o.GetName(), policy.PodSelector)
			}
			if len(rule.From) != 1 || rule.From[0].PodSelector != nil || rule.From[0].NamespaceSelector.MatchLabels["virtstack.io/monitoring"] != "true" {
				t.Errorf("%s opens metrics to %v", o.GetName(), rule.From)
			}
		}
	}
	if opened != 1 {
		t.Errorf("%d rules open the port metrics", opened)
	}
	for _, page := range []string{"../docs/monitoring.md", "../docs/install.md"} {
		raw, err := os.ReadFile(page)
		if err != nil || !strings.Contains(string(raw), "`virtstack.io/monitoring: \"true\"`") {
			t.Errorf("%s does not name the label (%v)", page, err)
		}
	}
}
