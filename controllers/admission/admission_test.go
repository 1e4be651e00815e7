package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/admission"
	"virtstack.io/virtstack/machine/config"
)

const (
	vm = `{metadata: {name: web, namespace: a%s}, spec: {%s, template: {metadata: {%s}, spec: {domain: {memory: {guest: %s}, devices: {}}}}}}`

	machine    = "system:serviceaccount:kubevirt:kubevirt-controller"
	apiserver  = "system:serviceaccount:kubevirt:kubevirt-apiserver"
	handler    = "system:serviceaccount:kubevirt:kubevirt-handler"
	somebody   = "system:serviceaccount:other:kubevirt-controller"
	restricted = "update of VMI object is restricted"
)

// plain is the configuration of a cluster whose KubeVirt says nothing.
func plain(context.Context) (config.Config, error) { return config.From(nil), nil }

// everyGate is that of one in which machines are saved.
func everyGate(context.Context) (config.Config, error) {
	kv := &v1.KubeVirt{}
	kv.Spec.Configuration.DeveloperConfiguration = &v1.DeveloperConfiguration{FeatureGates: []string{"Snapshot", "IncrementalBackup"}}
	return config.From(kv), nil
}

// anybody may read everything but what is called private.
func anybody(_ context.Context, s authorization.SubjectAccessReviewSpec) (bool, string, error) {
	return s.ResourceAttributes.Name != "private", "", nil
}

// TestAGuestReadsWhatItsOwnerMay is S1: who may make machines but not read a Secret gets it by no field of a machine.
func TestAGuestReadsWhatItsOwnerMay(t *testing.T) {
	const vm = `{spec: {runStrategy: Halted, template: {spec: {domain: {memory: {guest: 1Gi}, devices: {}}, %s}}}}`
	for at, source := range map[string]string{
		"volumes[0].secret.secretName":                               `volumes: [{name: a, secret: {secretName: %s}}]`,
		"volumes[0].configMap.name":                                  `volumes: [{name: a, configMap: {name: %s}}]`,
		"volumes[0].sysprep.secret.name":                             `volumes: [{name: a, sysprep: {secret: {name: %s}}}]`,
		"volumes[0].serviceAccount.serviceAccountName":               `volumes: [{name: a, serviceAccount: {serviceAccountName: %s}}]`,
		"volumes[0].cloudInitNoCloud.secretRef.name":                 `volumes: [{name: a, cloudInitNoCloud: {secretRef: {name: %s}}}]`,
		"volumes[0].cloudInitConfigDrive.networkDataSecretRef.name":  `volumes: [{name: a, cloudInitConfigDrive: {networkDataSecretRef: {name: %s}}}]`,
		"accessCredentials[0].userPassword.source.secret.secretName": `accessCredentials: [{userPassword: {source: {secret: {secretName: %s}}, propagationMethod: {qemuGuestAgent: {}}}}]`,
	} {
		t.Run(at, func(t *testing.T) {
			with := func(name string) string { return fmt.Sprintf(vm, fmt.Sprintf(source, name)) }
			check(t, ask(t, admission.ObjectsPath, request(t, somebody, with("public"), "")), "", "")
			check(t, ask(t, admission.ObjectsPath, request(t, somebody, with("private"), "")), "spec.template.spec."+at+": Forbidden", "")
			check(t, ask(t, admission.ObjectsPath, request(t, somebody, with("private"), with("public"))), "Forbidden", "")
			kept := strings.Replace(with("private"), "1Gi", "2Gi", 1)
			check(t, ask(t, admission.ObjectsPath, request(t, somebody, kept, with("private"))), "", "")
			check(t, ask(t, admission.ObjectsPath, request(t, machine, with("private"), "")), "", "")
		})
	}
}

func machineYAML(meta, run, template, memory string) string {
	return fmt.Sprintf(vm, meta, run, template, memory)
}

func vmiYAML(labels, memory string) string {
	return fmt.Sprintf(`{metadata: {name: web, namespace: a, labels: {%s}}, spec: {domain: {memory: {guest: %s}, devices: {}}}}`, labels, memory)
}

// request is a review's request for the objects, as JSON; an old object makes it an update.
func request(t *testing.T, user, object, old string) *admissionv1.AdmissionRequest {
	t.Helper()
	r := &admissionv1.AdmissionRequest{UID: "u1", Name: "web", Operation: admissionv1.Create}
	r.Kind = metav1.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}
	r.UserInfo.Username = user
	r.Object = raw(t, object)
	if old != "" {
		r.Operation = admissionv1.Update
		r.OldObject = raw(t, old)
	}
	return r
}

func raw(t *testing.T, text string) runtime.RawExtension {
	t.Helper()
	object, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: object}
}

// ask sends the request through the handler.
func ask(t *testing.T, path string, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: r})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	admission.Handler(nothingElse()).ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || w.Code != http.StatusOK {
		t.Fatalf("got %d %s: %v", w.Code, w.Body, err)
	}
	if review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" || review.Response.UID != r.UID {
		t.Fatalf("got a review of %s %s for request %q", review.APIVersion, review.Kind, review.Response.UID)
	}
	return review.Response
}

func TestMachines(t *testing.T) {
	good := machineYAML("", "runStrategy: Halted", "", "128Mi")
	bad := machineYAML("", "runStrategy: Halted", "", "0")
	for name, tc := range map[string]struct{ object, old, message, warning string }{
		"created":              {object: good},
		"refused":              {object: bad, message: "spec.template.spec.domain.memory.guest: Invalid value"},
		"made worse":           {object: bad, old: good, message: "must be more than 0"},
		"labelled while wrong": {object: machineYAML(", labels: {a: b}", "runStrategy: Halted", "", "0"), old: bad},
		"deleted while wrong":  {object: machineYAML(", deletionTimestamp: 2026-01-01T00:00:00Z", "runStrategy: Always", "", "0"), old: bad},
		"repaired":             {object: good, old: `{spec: {template: {spec: {domain: {devices: {disks: [{bootOrder: -1}]}}}}}}`},
		"running":              {object: machineYAML("", "running: true", "", "128Mi"), warning: "spec.running is deprecated"},
		"placed by hand": {object: machineYAML("", "runStrategy: Halted", "labels: {kubevirt.io/nodeName: node-1}", "128Mi"),
			message: `spec.template.metadata.labels[kubevirt.io/nodeName]: Unsupported value: "node-1"`},
		"unreadable": {object: `{spec: {template: {spec: {domain: {devices: {disks: [{bootOrder: -1}]}}}}}}`, message: "bootOrder"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, ask(t, admission.ObjectsPath, request(t, somebody, tc.object, tc.old)), tc.message, tc.warning)
		})
	}
}

func check(t *testing.T, got *admissionv1.AdmissionResponse, message, warning string) {
	t.Helper()
	if got.Allowed != (message == "") {
		t.Fatalf("allowed: %v, %+v", got.Allowed, got.Result)
	}
	if message != "" && !strings.Contains(got.Result.Message, message) {
		t.Errorf("got message %q, want %q in it", got.Result.Message, message)
	}
	told := slices.DeleteFunc(slices.Clone(got.Warnings), func(w string) bool {
		return warning == "" && strings.Contains(w, "has no effect in this version")
	})
	if warnings := strings.Join(told, "\n"); (warnings == "") != (warning == "") || !strings.Contains(warnings, warning) {
		t.Errorf("got warnings %q, want %q in it", warnings, warning)
	}
}

func TestInstances(t *testing.T) {
	const placed = "kubevirt.io/nodeName: node-1"
	small, large := vmiYAML("", "128Mi"), vmiYAML("", "256Mi")
	for name, tc := range map[string]struct{ user, object, old, message string }{
		"created":             {somebody, small, "", ""},
		"refused":             {somebody, vmiYAML("", "0"), "", "spec.domain.memory.guest: Invalid value"},
		"refused component":   {machine, vmiYAML("", "0"), "", "must be more than 0"},
		"changed by somebody": {somebody, large, small, restricted},
		"changed by handler":  {handler, large, small, restricted},
		"changed live":        {machine, large, small, ""},
		"hotplugged":          {apiserver, large, small, ""},
		"changed to wrong":    {machine, vmiYAML("", "0"), small, "must be more than 0"},
		"created and placed":  {somebody, vmiYAML(placed, "128Mi"), "", `metadata.labels[kubevirt.io/nodeName]: Unsupported value: "node-1": is reserved`},
		"placed":              {machine, vmiYAML(placed, "128Mi"), small, ""},
		"moved by somebody":   {somebody, vmiYAML("kubevirt.io/nodeName: node-2", "128Mi"), vmiYAML(placed, "128Mi"), `must stay "node-1"`},
		"other label":         {somebody, vmiYAML("a: b", "128Mi"), small, ""},
		"wrong but labelled":  {somebody, vmiYAML("a: b", "0"), vmiYAML("", "0"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request(t, tc.user, tc.object, tc.old)
			asked.Kind.Kind = "VirtualMachineInstance"
			check(t, ask(t, admission.InstancesPath, asked), tc.message, "")
		})
	}
}

// How urgent a migration is, is for virt-controller to say: whoever may move a machine would else go before a drain.
func TestUrgencyIsVirtControllers(t *testing.T) {
	const move = `{spec: {vmiName: web, priority: system-critical}}`
	for name, tc := range map[string]struct{ user, object, old, message string }{
		"by somebody":         {somebody, move, "", `spec.migrationPriority: Forbidden: priority "system-critical" is for virt-controller to set`},
		"by virt-api":         {apiserver, move, "", "is for virt-controller to set"},
		"by virt-controller":  {machine, move, "", "spec.migrationPriority: Forbidden: needs the feature gate"},
		"without":             {somebody, `{spec: {vmiName: web}}`, "", ""},
		"labelled afterwards": {somebody, `{metadata: {labels: {a: b}}, ` + move[1:], move, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request(t, tc.user, tc.object, tc.old)
			asked.Kind.Kind = "VirtualMachineInstanceMigration"
			got := ask(t, admission.ObjectsPath, asked)
			check(t, got, tc.message, "")
			if tc.user == machine && strings.Contains(got.Result.Message, "for virt-controller") {
				t.Errorf("virt-controller is refused: %s", got.Result.Message)
			}
		})
	}
}

func TestRefusalIsAStatusThatClientsKnow(t *testing.T) {
	got := ask(t, admission.ObjectsPath, request(t, somebody, machineYAML("", "runStrategy: Sometimes", "", "0"), "")).Result
	if got.Code != 422 || got.Reason != metav1.StatusReasonInvalid || got.Details.Kind != "VirtualMachine" || got.Details.Name != "web" {
		t.Errorf("got %+v", got)
	}
	if len(got.Details.Causes) != 2 {
		t.Fatalf("got causes %+v, want 2", got.Details.Causes)
	}
	want := metav1.StatusCause{
		Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.template.spec.domain.memory.guest",
		Message: `Invalid value: "0": must be more than 0, such as 2Gi`,
	}
	if got.Details.Causes[1] != want {
		t.Errorf("got %+v\nwant %+v", got.Details.Causes[1], want)
	}
}

func TestManyErrorsMakeAShortAnswer(t *testing.T) {
	volumes := strings.Repeat("{name: _}, ", 400)
	object := fmt.Sprintf(`{spec: {runStrategy: Halted, template: {spec: {domain: {memory: {guest: 1Gi}, devices: {}}, volumes: [%s]}}}}`, volumes)
	got := ask(t, admission.ObjectsPath, request(t, somebody, object, "")).Result
	if len(got.Details.Causes) != 100 || !strings.HasSuffix(got.Message, "more validation errors") || len(got.Message) > 10000 {
		t.Errorf("got %d causes and a message of %d bytes", len(got.Details.Causes), len(got.Message))
	}
}

func TestRequestsThatAreNoReviews(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path string
		body         io.Reader
		code         int
	}{
		"other method": {http.MethodGet, admission.ObjectsPath, nil, http.StatusMethodNotAllowed},
		"other path":   {http.MethodPost, "/", nil, http.StatusNotFound},
		"no JSON":      {http.MethodPost, admission.ObjectsPath, strings.NewReader("{"), http.StatusBadRequest},
		"no request":   {http.MethodPost, admission.InstancesPath, strings.NewReader("{}"), http.StatusBadRequest},
		"too large":    {http.MethodPost, admission.InstancesPath, bytes.NewReader(make([]byte, 9<<20)), http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			admission.Handler(nothingElse()).ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, tc.body))
			if w.Code != tc.code {
				t.Errorf("got %d, want %d: %s", w.Code, tc.code, w.Body)
			}
		})
	}
}
