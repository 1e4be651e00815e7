package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/gitops/plan"
	"virtstack.io/virtstack/machine/change"
)

const vmText = `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: %s, namespace: team}, spec: {runStrategy: %s, instancetype: {name: %s},
  template: {metadata: {labels: {color: %s}}, spec: {domain: {devices: {}}, volumes: [{name: c, configMap: {name: settings}}, {name: d, persistentVolumeClaim: {claimName: data}}]}}}}`

func object(t interface{ Fatal(...any) }, format string, args ...any) plan.Object {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(fmt.Sprintf(format, args...)), &o.Object); err != nil {
		t.Fatal(err)
	}
	return plan.Object{Unstructured: o}
}

// draw returns some objects, each once.
func draw(t *rapid.T, name string) []plan.Object {
	var all []plan.Object
	word := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, name+label) }
	for _, vm := range []string{"one", "two", "three"} {
		if rapid.Bool().Draw(t, name+vm) {
			all = append(all, object(t, vmText, vm, word(vm+"strategy", "Always", "Halted", "Manual", "Once", "RerunOnFailure"),
				word(vm+"type", "small", "large", "absent"), word(vm+"color", "red", "blue")))
		}
	}
	for _, kind := range []string{"small", "large"} {
		all = append(all, object(t, `{apiVersion: instancetype.kubevirt.io/v1beta1, kind: VirtualMachineClusterInstancetype, metadata: {name: %s},
  spec: {cpu: {guest: %s}, memory: {guest: 1Gi}}}`, kind, word(kind+"cpus", "1", "2")))
	}
	if rapid.Bool().Draw(t, name+"settings") {
		all = append(all, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: team}, data: {a: %s}}`, word("content", "x", "z")))
	}
	if rapid.Bool().Draw(t, name+"claim") {
		all = append(all, object(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: team}, spec: {}}`))
	}
	return all
}

func input(from, to []plan.Object) plan.Input {
	return plan.Input{From: plan.Side{Name: "a", Objects: from}, To: plan.Side{Name: "b", Objects: to}}
}

func TestAPlanOfNothingIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := draw(t, "a")
		r := plan.For(input(all, all))
		if r.Class != change.None || len(r.Objects) != 0 || r.Unchanged != len(all) || !r.Capacity.Delta.CPU.IsZero() || !r.Capacity.Delta.Memory.IsZero() {
			t.Fatalf("got %+v", r)
		}
	})
}

func TestOrderDoesntMatterAndAPlanIsTheSameTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := draw(t, "from"), draw(t, "to")
		first := plan.For(input(from, to))
		second := plan.For(input(rapid.Permutation(from).Draw(t, "from again"), rapid.Permutation(to).Draw(t, "to again")))
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("planned twice:\n%s", diff)
		}
		worst := change.None
		for _, i := range first.Objects {
			worst = change.Worst(worst, i.Class)
		}
		if worst != first.Class {
			t.Fatalf("the class is %s, the worst of the objects' %s", first.Class, worst)
		}
	})
}

func TestWhatAChangeDoes(t *testing.T) {
	settings := `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: team}, data: {a: %s}}`
	kind := `{apiVersion: instancetype.kubevirt.io/v1beta1, kind: VirtualMachineClusterInstancetype, metadata: {name: %s}, spec: {cpu: {guest: %d}, memory: {guest: 1Gi}}}`
	claim := `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: team}, spec: {volumeName: %s, resources: {requests: {storage: %s}}}}`
	pool := `{apiVersion: pool.kubevirt.io/v1beta1, kind: VirtualMachinePool, metadata: {name: p, namespace: team}, spec: {replicas: %d, selector: {}, virtualMachineTemplate:
  {spec: {runStrategy: Always, template: {spec: {hostname: %s, domain: {memory: {guest: 1Gi}, devices: {}}}}}}}}`
	vmi := `{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: bare, namespace: team}, spec: {hostname: %s, domain: {memory: {guest: 1Gi}, devices: {}}}}`
	bundle := `{apiVersion: virtstack.io/v1alpha1, kind: Bundle, metadata: {name: b, namespace: team}, spec: {prune: {enabled: %t, vms: %s}}}`
	vm := object(t, vmText, "one", "Always", "small", "red")
	for name, tc := range map[string]struct {
		from, to []plan.Object
		class    change.Class
		refused  bool
	}{
		"a type that is kept":    {[]plan.Object{vm, object(t, kind, "small", 1)}, []plan.Object{vm, object(t, kind, "small", 2)}, change.None, false},
		"another type":           {[]plan.Object{vm, object(t, kind, "small", 1), object(t, kind, "large", 2)}, []plan.Object{object(t, vmText, "one", "Always", "large", "red"), object(t, kind, "small", 1), object(t, kind, "large", 2)}, change.Restart, false},
		"a type that is unknown": {[]plan.Object{vm}, []plan.Object{object(t, vmText, "one", "Always", "large", "red")}, change.Restart, false},
		"a name of the same":     {[]plan.Object{vm, object(t, kind, "small", 1), object(t, kind, "large", 1)}, []plan.Object{object(t, vmText, "one", "Always", "large", "red"), object(t, kind, "small", 1), object(t, kind, "large", 1)}, change.None, false},
		"what a volume holds":    {[]plan.Object{vm, object(t, settings, "x")}, []plan.Object{vm, object(t, settings, "z")}, change.Restart, false},
		"what nobody reads":      {[]plan.Object{object(t, settings, "x")}, []plan.Object{object(t, settings, "z")}, change.None, false},
		"a claim grows":          {[]plan.Object{object(t, claim, "v", "1Gi")}, []plan.Object{object(t, claim, "v", "2Gi")}, change.None, false},
		"a claim shrinks":        {[]plan.Object{object(t, claim, "v", "2Gi")}, []plan.Object{object(t, claim, "v", "1Gi")}, change.None, true},
		"another volume":         {[]plan.Object{object(t, claim, "v", "1Gi")}, []plan.Object{object(t, claim, "w", "1Gi")}, change.None, true},
		"a larger pool":          {[]plan.Object{object(t, pool, 1, "a")}, []plan.Object{object(t, pool, 3, "a")}, change.Start, false},
		"a smaller pool":         {[]plan.Object{object(t, pool, 3, "a")}, []plan.Object{object(t, pool, 1, "a")}, change.Delete, false},
		"another template":       {[]plan.Object{object(t, pool, 3, "a")}, []plan.Object{object(t, pool, 3, "b")}, change.Restart, false},
		"a bare VMI":             {[]plan.Object{object(t, vmi, "a")}, []plan.Object{object(t, vmi, "b")}, change.Replace, false},
		"a Bundle that prunes":   {[]plan.Object{object(t, bundle, true, "Allow")}, nil, change.Delete, false},
		"a Bundle that keeps":    {[]plan.Object{object(t, bundle, true, "Keep")}, nil, change.None, false},
		"a Bundle that leaves":   {[]plan.Object{object(t, bundle, false, "Allow")}, nil, change.None, false},
		"a VM with another name": {[]plan.Object{vm}, []plan.Object{object(t, vmText, "two", "Always", "small", "red")}, change.Delete, false},
	} {
		t.Run(name, func(t *testing.T) {
			if r := plan.For(input(tc.from, tc.to)); r.Class != tc.class || r.Refused != tc.refused {
				t.Errorf("got %s, refused %t, want %s, %t: %+v", r.Class, r.Refused, tc.class, tc.refused, r.Objects)
			}
		})
	}
}

const bareText = `{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: bare, namespace: team}, spec: {domain: {memory: {guest: 1Gi}, devices: {}}}, status: {phase: %s}}`

// A VMI that a cluster has asks for nothing new, whether it runs, starts or has ended; one that goes gives back what it
// asks for, and one that comes asks for it.
func TestCapacityOfABareVMIOfACluster(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to      string // phases; empty: it isn't there
		before, after bool
	}{
		"runs": {"Running", "Running", true, true}, "starts": {"Scheduled", "Scheduled", true, true},
		"has ended": {"Succeeded", "Succeeded", false, false}, "goes": {"Running", "", true, false},
		"an ended one goes": {"Failed", "", false, false}, "comes": {"", `""`, false, true},
	} {
		in := plan.Input{Live: true}
		if tc.from != "" {
			in.From.Objects = []plan.Object{object(t, bareText, tc.from)}
		}
		if tc.to != "" {
			in.To.Objects = []plan.Object{object(t, bareText, tc.to)}
		}
		c := plan.For(in).Capacity
		if before, after := !c.Before.Memory.IsZero(), !c.After.Memory.IsZero(); before != tc.before || after != tc.after {
			t.Errorf("%s: asks before %t, after %t, want %t, %t", name, before, after, tc.before, tc.after)
		}
		if same := c.Delta.Memory.IsZero(); same != (tc.before == tc.after) {
			t.Errorf("%s: the difference is %s", name, c.Delta.Memory.String())
		}
	}
}

// What no controller of this version acts on is said to be without effect, and asks for nothing.
func TestPoolsAndReplicaSetsHaveNoController(t *testing.T) {
	pool := `{apiVersion: pool.kubevirt.io/v1beta1, kind: VirtualMachinePool, metadata: {name: p, namespace: team}, spec: {replicas: %d, selector: {},
  virtualMachineTemplate: {spec: {runStrategy: Always, template: {spec: {domain: {memory: {guest: 1Gi}, devices: {}}}}}}}}`
	set := `{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstanceReplicaSet, metadata: {name: s, namespace: team}, spec: {replicas: %d}}`
	for _, text := range []string{pool, set} {
		for _, live := range []bool{false, true} {
			in := input([]plan.Object{object(t, text, 1)}, []plan.Object{object(t, text, 3)})
			in.Live = live
			r := plan.For(in)
			if len(r.Objects) != 1 || !strings.Contains(strings.Join(r.Objects[0].Notes, " "), "no controller for") {
				t.Fatalf("live %t: got %+v", live, r.Objects)
			}
			if !r.Capacity.After.Memory.IsZero() || !r.Capacity.Before.Memory.IsZero() {
				t.Errorf("live %t: %s asks for %+v", live, r.Objects[0], r.Capacity)
			}
			if c := r.Objects[0].Capacity; text == pool && (c == nil || c.Before.Memory.Value()*3 != c.After.Memory.Value()) {
				t.Errorf("live %t: its VMs would ask for %+v, want three times as much", live, c)
			}
		}
	}
}

// What a Bundle asks to be approved is what a plan names: a VM that is renamed counts, one without a namespace gives none.
func TestRemovedVMs(t *testing.T) {
	vm := func(namespace, name string) plan.Object {
		return object(t, `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: %s, namespace: %q}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}}`, name, namespace)
	}
	settings := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: team}}`)
	for name, c := range map[string]struct {
		from, to []plan.Object
		want     *plan.Removal
	}{
		"none of two":           {[]plan.Object{vm("team", "a"), vm("team", "b"), settings}, []plan.Object{vm("team", "a"), vm("team", "b")}, nil},
		"two of three":          {[]plan.Object{vm("team", "b"), vm("team", "a"), vm("team", "c"), settings}, []plan.Object{vm("team", "c")}, &plan.Removal{VMs: []string{"team/a", "team/b"}, Of: 3, Approval: plan.Approval([]string{"team/b", "team/a"})}},
		"one gets another name": {[]plan.Object{vm("team", "a")}, []plan.Object{vm("team", "b")}, &plan.Removal{VMs: []string{"team/a"}, Of: 1, Approval: plan.Approval([]string{"team/a"})}},
		"one has no namespace":  {[]plan.Object{vm("", "a")}, nil, &plan.Removal{VMs: []string{"a"}, Of: 1}},
	} {
		got := plan.For(plan.Input{From: plan.Side{Objects: c.from}, To: plan.Side{Objects: c.to}}).Removal
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if plan.Approval([]string{"a/b"}) == plan.Approval([]string{"a/b", "a/c"}) {
		t.Error("one approval stands for two removals")
	}
}
