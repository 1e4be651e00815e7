package validate_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/validate"
)

// vm is the machine that every table changes: domain, devices, volumes and networks are replaced by the
// case's YAML, merged key by key at the top of each.
const vm = `
spec:
  runStrategy: Halted
  template:
    spec:
      domain:
        memory: {guest: 128Mi}
        devices:
          disks: [{name: root, disk: {bus: virtio}}]
          interfaces: [{name: net, masquerade: {}}]
      networks: [{name: net, pod: {}}]
      volumes: [{name: root, containerDisk: {image: "registry.example/tiny:1"}}]
`

// tables are cases by name: what is laid over the machine, and the errors wanted, each as its path below
// spec.template.spec, a space, and a part of the rest of its message. Paths that start with / are whole.
type tables map[string]struct {
	over string
	want []string
}

func (tables tables) run(t *testing.T) {
	t.Helper()
	for name, tc := range tables {
		t.Run(name, func(t *testing.T) {
			vm := parse(t, tc.over)
			errs := validate.VM(vm)
			expect(t, errs, tc.want)
			if len(errs) == 0 && vm.Spec.Instancetype == nil && vm.Spec.Preference == nil {
				// What a machine that is accepted makes is accepted: else it would be told where its author doesn't look.
				made := defaults.VMI(vm, config.From(nil))
				expect(t, validate.VMI(field.NewPath("spec", "template", "spec"), &made.Spec), nil)
			}
		})
	}
}

func expect(t *testing.T, errs field.ErrorList, want []string) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("got %d errors, want %d:\n%v\nwant %q", len(errs), len(want), errs.ToAggregate(), want)
	}
	for i, err := range errs {
		path, part, _ := strings.Cut(want[i], " ")
		if whole, ok := strings.CutPrefix(path, "/"); ok {
			path = whole
		} else {
			path = "spec.template.spec." + path
		}
		if err.Field != path || !strings.Contains(err.ErrorBody(), part) {
			t.Errorf("error %d: got %q\nwant %s … %s", i, err.Error(), path, part)
		}
		if err.Detail == "" && err.Type != field.ErrorTypeNotSupported {
			t.Errorf("error %d says nothing of what would be right: %v", i, err)
		}
	}
}

// parse lays the YAML over the machine.
func parse(t *testing.T, over string) *v1.VirtualMachine {
	t.Helper()
	base, top := map[string]any{}, map[string]any{}
	for text, into := range map[string]*map[string]any{vm: &base, over: &top} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	// A case without spec is about spec.template.spec.
	if _, ok := top["spec"]; !ok {
		top = map[string]any{"spec": map[string]any{"template": map[string]any{"spec": top}}}
	}
	merge(base, top)
	text, err := yaml.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	made := &v1.VirtualMachine{}
	if err := yaml.UnmarshalStrict(text, made); err != nil {
		t.Fatal(err)
	}
	return made
}

func merge(base, top map[string]any) {
	for key, value := range top {
		inner, isMap := value.(map[string]any)
		old, wasMap := base[key].(map[string]any)
		if isMap && wasMap {
			merge(old, inner)
			continue
		}
		base[key] = value
	}
}

func TestWhenAMachineRuns(t *testing.T) {
	tables{
		"halted":         {``, nil},
		"running":        {`spec: {runStrategy: null, running: true}`, nil},
		"both":           {`spec: {running: false}`, []string{"/spec.running false: running and runStrategy exclude each other"}},
		"neither":        {`spec: {runStrategy: null}`, []string{"/spec.runStrategy Required"}},
		"unknown":        {`spec: {runStrategy: Sometimes}`, []string{`/spec.runStrategy "Sometimes": supported values: "Always", "Halted"`}},
		"no template":    {`spec: {template: null}`, []string{"/spec.template Required"}},
		"grace":          {`{terminationGracePeriodSeconds: 0}`, nil},
		"negative grace": {`{terminationGracePeriodSeconds: -1}`, []string{"terminationGracePeriodSeconds -1: must be from 0 to"}},
		"start strategy": {`{startStrategy: Later}`, []string{`startStrategy "Later"`}},
		"eviction":       {`{evictionStrategy: Move}`, []string{`evictionStrategy "Move"`}},
		"probe's port":   {`{readinessProbe: {httpGet: {port: 99999}}}`, []string{`readinessProbe.httpGet.port "99999": must be from 1 to 65535`}},
		"named port":     {`{readinessProbe: {tcpSocket: {port: http}}}`, nil},
		"toleration":     {`{tolerations: [{key: a, operator: Foo}]}`, []string{`tolerations[0].operator "Foo"`}},
		"tolerates all":  {`{tolerations: [{operator: Exists}, {key: example.com/gpu, value: x, effect: NoSchedule}]}`, nil},
		"no taint":       {`{tolerations: [{value: x}]}`, []string{"tolerations[0].key Required"}},
		"scheduler":      {`{schedulerName: "no such !"}`, []string{`schedulerName "no such !": must be the name of a scheduler`}},
		"architecture":   {`{architecture: vax}`, []string{`architecture "vax"`}},
	}.run(t)
}

func TestWhatAMachineIsCalled(t *testing.T) {
	tables{
		"host name":        {`{hostname: db1, subdomain: a.b}`, nil},
		"capitals":         {`{hostname: DB1}`, []string{`hostname "DB1": must be a DNS label: lower-case letters`}},
		"dot":              {`{hostname: db.1}`, []string{"hostname DNS label"}},
		"subdomain":        {`{subdomain: A}`, []string{"subdomain lower-case"}},
		"dns without":      {`{dnsPolicy: None}`, []string{"dnsConfig.nameservers Required"}},
		"dns policy":       {`{dnsPolicy: Mine}`, []string{`dnsPolicy "Mine"`}},
		"probe":            {`{livenessProbe: {}}`, []string{"livenessProbe must have one of exec, guestAgentPing, httpGet, tcpSocket"}},
		"two probes":       {`{readinessProbe: {guestAgentPing: {}, tcpSocket: {port: 1}}}`, []string{"readinessProbe guestAgentPing, tcpSocket"}},
		"no credentials":   {`{accessCredentials: [{}]}`, []string{"accessCredentials[0] sshPublicKey, userPassword"}},
		"credential place": {`{accessCredentials: [{sshPublicKey: {source: {secret: {secretName: ../x}}, propagationMethod: {qemuGuestAgent: {users: [root]}}}}]}`, []string{"accessCredentials[0].sshPublicKey.source.secret.secretName \"../x\""}},
	}.run(t)
}

func TestFirmware(t *testing.T) {
	tables{
		"efi bare": {`{domain: {firmware: {bootloader: {efi: {}}}}}`,
			[]string{"domain.firmware.bootloader.efi.secureBoot set firmware.bootloader.efi.secureBoot: false, or features.smm.enabled: true"}},
		"efi plain":      {`{domain: {firmware: {bootloader: {efi: {secureBoot: false}}}}}`, nil},
		"efi secure":     {`{domain: {features: {smm: {}}, firmware: {bootloader: {efi: {}}}}}`, nil},
		"smm off":        {`{domain: {features: {smm: {enabled: false}}, firmware: {bootloader: {efi: {}}}}}`, []string{"domain.firmware.bootloader.efi.secureBoot"}},
		"efi preference": {`spec: {preference: {name: p}, template: {spec: {domain: {firmware: {bootloader: {efi: {}}}}}}}`, nil},
		"bios and efi":   {`{domain: {firmware: {bootloader: {efi: {}, bios: {}}}}}`, []string{"domain.firmware.bootloader bios, efi"}},
		"uuid":           {`{domain: {firmware: {uuid: 5D307CA9-b3ef-428c-8861-06e72d69f223}}}`, nil},
		"short uuid":     {`{domain: {firmware: {uuid: 5d307ca9}}}`, []string{`domain.firmware.uuid "5d307ca9": must be a UUID`}},
		"odd uuid":       {`{domain: {firmware: {uuid: 5d307ca9-b3ef-428c-8861-06e72d69f22x}}}`, []string{"domain.firmware.uuid"}},
		"serial":         {`{domain: {firmware: {serial: "a b"}}}`, []string{"domain.firmware.serial letters, digits"}},
		"kernel":         {`{domain: {firmware: {kernelBoot: {container: {image: i, kernelPath: /boot/vmlinuz}}}}}`, nil},
		"no kernel":      {`{domain: {firmware: {kernelBoot: {container: {image: i}}}}}`, []string{"domain.firmware.kernelBoot.container.kernelPath Required"}},
		"only an initrd": {`{domain: {firmware: {kernelBoot: {container: {image: i, initrdPath: /i}}}}}`, []string{"domain.firmware.kernelBoot.container.kernelPath Required"}},
		"arguments":      {`{domain: {firmware: {kernelBoot: {kernelArgs: "a=b\n\tc", container: {image: i, kernelPath: /k}}}}}`, nil},
		"odd arguments":  {`{domain: {firmware: {kernelBoot: {kernelArgs: "a\0", container: {image: i, kernelPath: /k}}}}}`, []string{"domain.firmware.kernelBoot.kernelArgs control"}},
		"only arguments": {`{domain: {firmware: {kernelBoot: {kernelArgs: quiet}}}}`, []string{"domain.firmware.kernelBoot.container Required"}},
		"no image":       {`{domain: {firmware: {kernelBoot: {container: {image: "", kernelPath: /k}}}}}`, []string{"domain.firmware.kernelBoot.container.image Required"}},
	}.run(t)
}

// TestAnythingAtAll is the property that no object makes a rule panic, change what it was given, or answer
// differently the second time.
func TestAnythingAtAll(t *testing.T) {
	for seed := range int64(300) {
		filled := &v1.VirtualMachine{}
		randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 4).MaxDepth(14).Fill(filled)
		before := filled.DeepCopy()
		first := validate.VM(filled)
		if !reflect.DeepEqual(before, filled) {
			t.Fatalf("seed %d: the machine was changed", seed)
		}
		if second := validate.VM(filled); !slices.EqualFunc(first, second, same) {
			t.Fatalf("seed %d: got %v, then %v", seed, first, second)
		}
	}
}

func same(a, b *field.Error) bool { return a.Error() == b.Error() }
