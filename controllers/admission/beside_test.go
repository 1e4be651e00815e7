package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	backup "kubevirt.io/api/backup/v1alpha1"
	v1 "kubevirt.io/api/core/v1"
	instancetype "kubevirt.io/api/instancetype/v1beta1"
	snapshot "kubevirt.io/api/snapshot/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/admission"
)

// nothingElse is a cluster in which there is nothing but the object under review.
func nothingElse() admission.Cluster { return with(interceptor.Funcs{}) }

func with(funcs interceptor.Funcs, objects ...client.Object) admission.Cluster {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1.AddToScheme, instancetype.AddToScheme, snapshot.AddToScheme, backup.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return admission.Cluster{Configuration: plain, May: anybody, Lists: kube, Live: kube}
}

// there reads objects of namespace a.
func there[T any, P interface {
	*T
	client.Object
}](t *testing.T, text string) client.Object {
	t.Helper()
	o := P(new(T))
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	o.SetNamespace("a")
	return o
}

// verdict is the answer to one new object of namespace a.
func verdict(t *testing.T, c admission.Cluster, kind, text string) *admissionv1.AdmissionResponse {
	t.Helper()
	r := request(t, somebody, text, "")
	r.Namespace, r.Kind.Kind = "a", kind
	switch kind {
	case "VirtualMachineRestore":
		r.Kind.Group = "snapshot.kubevirt.io"
	case "VirtualMachineBackup":
		r.Kind.Group = "backup.kubevirt.io"
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: r})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	admission.Handler(c).ServeHTTP(w, httptest.NewRequest(http.MethodPost, admission.ObjectsPath, bytes.NewReader(body)))
	answer := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		return &admissionv1.AdmissionResponse{UID: "", Warnings: []string{w.Body.String()}}
	}
	return answer.Response
}

func TestOneMigrationOfAMachine(t *testing.T) {
	const asked = `{metadata: {name: two}, spec: {vmiName: web}}`
	type vmim = v1.VirtualMachineInstanceMigration
	type vmi = v1.VirtualMachineInstance
	for name, tc := range map[string]struct {
		others []client.Object
		part   string
	}{
		"no instance yet": {},
		"another's":       {[]client.Object{there[vmim](t, `{metadata: {name: one}, spec: {vmiName: db}, status: {phase: Running}}`)}, ""},
		"one that ended":  {[]client.Object{there[vmim](t, `{metadata: {name: one}, spec: {vmiName: web}, status: {phase: Failed}}`)}, ""},
		"in flight":       {[]client.Object{there[vmim](t, `{metadata: {name: one}, spec: {vmiName: web}, status: {phase: Running}}`)}, "in-flight migration detected: wait for one"},
		"not started":     {[]client.Object{there[vmim](t, `{metadata: {name: one}, spec: {vmiName: web}}`)}, "in-flight migration detected"},
		"runs":            {[]client.Object{there[vmi](t, `{metadata: {name: web}, spec: {domain: {devices: {}}}, status: {phase: Running}}`)}, ""},
		"ended":           {[]client.Object{there[vmi](t, `{metadata: {name: web}, spec: {domain: {devices: {}}}, status: {phase: Succeeded}}`)}, "must be an instance that runs: this one is Succeeded"},
		"can't": {[]client.Object{there[vmi](t, `{metadata: {name: web}, spec: {domain: {devices: {}}}, status: {phase: Running,
			conditions: [{type: LiveMigratable, status: "False", reason: HostDeviceNotLiveMigratable, message: a GPU}]}}`)}, "Cannot migrate VMI, Reason: HostDeviceNotLiveMigratable, Message: a GPU"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, verdict(t, with(interceptor.Funcs{}, tc.others...), "VirtualMachineInstanceMigration", asked), tc.part, "")
		})
	}
}

func TestOneKubeVirt(t *testing.T) {
	const asked = `{metadata: {name: web, namespace: a}, spec: {}}`
	same := there[v1.KubeVirt](t, `{metadata: {name: web}}`)
	other := there[v1.KubeVirt](t, `{metadata: {name: other}}`)
	check(t, verdict(t, with(interceptor.Funcs{}, same), "KubeVirt", asked), "", "")
	check(t, verdict(t, with(interceptor.Funcs{}, other), "KubeVirt", asked), "Kubevirt is already created: change a/other", "")
}

// A machine is whole once its instancetype and preference are there; until then nobody knows what is wrong with it.
func TestAMachineAndItsInstancetype(t *testing.T) {
	type size = instancetype.VirtualMachineInstancetype
	type taste = instancetype.VirtualMachinePreference
	const kind = `, kind: VirtualMachineInstancetype`
	vm := func(spec, template string) string {
		return `{metadata: {name: web}, spec: {runStrategy: Halted, ` + spec + `, template: {spec: {domain: {devices: {}` + template + `}}}}}`
	}
	small := there[size](t, `{metadata: {name: small}, spec: {cpu: {guest: 1}, memory: {guest: 1Gi}, ioThreadsPolicy: auto}}`)
	odd := there[size](t, `{metadata: {name: odd}, spec: {cpu: {guest: 1, dedicatedCPUPlacement: false, isolateEmulatorThread: true}, memory: {guest: 1Gi}}}`)
	large := there[taste](t, `{metadata: {name: large}, spec: {requirements: {memory: {guest: 8Gi}}}}`)
	all := with(interceptor.Funcs{}, small, odd, large)
	for name, tc := range map[string]struct{ object, part string }{
		"whole":        {vm(`instancetype: {name: small`+kind+`}`, ""), ""},
		"not there":    {vm(`instancetype: {name: later`+kind+`}`, `, ioThreadsPolicy: auto`), ""},
		"half there":   {vm(`instancetype: {name: odd`+kind+`}, preference: {name: later}`, ""), ""},
		"clash":        {vm(`instancetype: {name: small`+kind+`}`, `, ioThreadsPolicy: shared`), "VM field(s) spec.template.spec.domain.ioThreadsPolicy conflicts with selected instance type"},
		"requirements": {vm(`instancetype: {name: small`+kind+`}, preference: {name: large, kind: VirtualMachinePreference}`, ""), "insufficient memory resources: the preference requires at least 8Gi"},
		"together":     {vm(`instancetype: {name: odd`+kind+`}`, ""), "spec.template.spec.domain.cpu.isolateEmulatorThread: Invalid value: true: needs dedicatedCpuPlacement: true (of the machine that"},
	} {
		t.Run(name, func(t *testing.T) { check(t, verdict(t, all, "VirtualMachine", tc.object), tc.part, "") })
	}
}

func TestOneRestoreAndOneBackup(t *testing.T) {
	const target = `target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: db}, virtualMachineSnapshotName: s`
	restore := there[snapshot.VirtualMachineRestore](t, `{metadata: {name: one}, spec: {`+target+`}}`)
	done := there[snapshot.VirtualMachineRestore](t, `{metadata: {name: one}, spec: {`+target+`}, status: {complete: true}}`)
	gates := func(objects ...client.Object) admission.Cluster {
		c := with(interceptor.Funcs{}, objects...)
		c.Configuration = everyGate
		return c
	}
	asked := `{metadata: {name: two}, spec: {` + target + `}}`
	check(t, verdict(t, gates(done), "VirtualMachineRestore", asked), "", "")
	check(t, verdict(t, gates(restore), "VirtualMachineRestore", asked), "spec.target: Invalid value", "")

	const source = `source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: db}, pvcName: p`
	asked = `{metadata: {name: two}, spec: {` + source + `}}`
	running := there[backup.VirtualMachineBackup](t, `{metadata: {name: one}, spec: {`+source+`}}`)
	ended := there[backup.VirtualMachineBackup](t, `{metadata: {name: one}, spec: {`+source+`}, status: {conditions: [{type: Done, status: "True"}]}}`)
	check(t, verdict(t, gates(ended), "VirtualMachineBackup", asked), "", "")
	check(t, verdict(t, gates(running), "VirtualMachineBackup", asked), "must have no other backup in progress: wait for one", "")
}

// What can't be asked is no verdict: the API server says so to who asks.
func TestAClusterThatDoesNotAnswer(t *testing.T) {
	deaf := with(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return context.DeadlineExceeded
	}})
	got := verdict(t, deaf, "VirtualMachineInstanceMigration", `{metadata: {name: two}, spec: {vmiName: web}}`)
	if got.Allowed || len(got.Warnings) == 0 || !strings.Contains(got.Warnings[0], "listing each VirtualMachineInstanceMigration of namespace a") {
		t.Errorf("got %+v", got)
	}
}
