package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

const (
	amd64 = "amd64"
	arm64 = "arm64"
	s390x = "s390x"
)

var (
	inputBuses  = []v1.InputBus{v1.InputBusVirtio, v1.InputBusUSB}
	inputTypes  = []v1.InputType{v1.InputTypeTablet}
	soundModels = []string{"ich9", "ac97"}
	panicModels = []v1.PanicDeviceModel{v1.Hyperv, v1.Isa, v1.Pvpanic}
	ioPolicies  = []v1.IOThreadsPolicy{
		v1.IOThreadsPolicyShared, v1.IOThreadsPolicyAuto, v1.IOThreadsPolicySupplementalPool,
	}

	// videoTypes, watchdogs: what each architecture's machine has. A machine that names no architecture takes
	// the cluster's, which is amd64 here.
	videoTypes = map[string][]string{
		amd64: {"vga", "cirrus", "virtio", "ramfb", "bochs"}, arm64: {"virtio", "ramfb"}, s390x: {"virtio"},
	}
	watchdogs = map[string][]string{amd64: {"i6300esb"}, s390x: {"diag288"}}
)

func architecture(spec *v1.VirtualMachineInstanceSpec) string {
	if spec.Architecture == "" {
		return amd64
	}
	return spec.Architecture
}

// devices checks what is neither a disk nor a network.
func devices(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	d, arch := &spec.Domain.Devices, architecture(spec)
	var errs field.ErrorList
	for i, input := range d.Inputs {
		at := path.Child("inputs").Index(i)
		errs = append(errs, deviceName(at.Child("name"), input.Name)...)
		errs = append(errs, oneOf(at.Child("bus"), input.Bus, inputBuses)...)
		if input.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), "must be tablet"))
		}
		errs = append(errs, oneOf(at.Child("type"), input.Type, inputTypes)...)
	}
	errs = append(errs, sound(path.Child("sound"), d.Sound, arch)...)
	errs = append(errs, video(path.Child("video"), d, arch)...)
	errs = append(errs, watchdog(path.Child("watchdog"), d.Watchdog, arch)...)
	for i, p := range d.PanicDevices {
		at := path.Child("panicDevices").Index(i)
		if arch == s390x {
			errs = append(errs, field.Invalid(at, arch, "must be left out: s390x has no such device"))
		}
		if p.Model == nil || *p.Model == "" {
			errs = append(errs, field.Required(at.Child("model"), "must be hyperv, isa or pvpanic"))
		} else {
			errs = append(errs, oneOf(at.Child("model"), *p.Model, panicModels)...)
		}
	}
	errs = append(errs, aliases(path, d)...)
	return append(errs, passedThrough(path, d)...)
}

func sound(path *field.Path, s *v1.SoundDevice, arch string) field.ErrorList {
	if s == nil {
		return nil
	}
	if arch == arm64 {
		return field.ErrorList{field.Invalid(path, arch, "must be left out: arm64 machines have no sound device")}
	}
	return append(oneOf(path.Child("model"), s.Model, soundModels), deviceName(path.Child("name"), s.Name)...)
}

func video(path *field.Path, d *v1.Devices, arch string) field.ErrorList {
	if d.Video == nil {
		return nil
	}
	if d.AutoattachGraphicsDevice != nil && !*d.AutoattachGraphicsDevice {
		return field.ErrorList{field.Invalid(path, short(d.Video.Type),
			"must be left out of a machine without graphics: remove it, or autoattachGraphicsDevice: false")}
	}
	return oneOf(path.Child("type"), d.Video.Type, videoTypes[arch])
}

func watchdog(path *field.Path, w *v1.Watchdog, arch string) field.ErrorList {
	if w == nil {
		return nil
	}
	errs := deviceName(path.Child("name"), w.Name)
	found := set(w.WatchdogDevice)
	if len(found) > 1 {
		return append(errs, tooMany(path, found)...)
	}
	if len(watchdogs[arch]) == 0 {
		return append(errs, field.Invalid(path, arch, "must be left out: this architecture's machines have no watchdog"))
	}
	for _, kind := range found {
		errs = append(errs, oneOf(path, kind, watchdogs[arch])...)
	}
	if w.I6300ESB != nil {
		errs = append(errs, oneOf(path.Child("i6300esb", "action"), w.I6300ESB.Action,
			[]v1.WatchdogAction{v1.WatchdogActionPoweroff, v1.WatchdogActionReset, v1.WatchdogActionShutdown})...)
	}
	return errs
}

// passedThrough checks GPUs and host devices: each has a name of its own and says which device it is.
func passedThrough(path *field.Path, d *v1.Devices) field.ErrorList {
	type device struct {
		at          *field.Path
		name, model string
		claim       *v1.ClaimRequest
	}
	var all []device
	var errs field.ErrorList
	displays := 0
	for i, g := range d.GPUs {
		at := path.Child("gpus").Index(i)
		all = append(all, device{at, g.Name, g.DeviceName, g.ClaimRequest})
		if showsFirmware(g) {
			displays++
		}
		if displays > 1 {
			errs = append(errs, field.Invalid(at.Child("virtualGPUOptions", "display", "ramFB"), short(g.Name),
				"must be enabled for one display only: set ramFB.enabled: false"))
		}
	}
	for i, h := range d.HostDevices {
		all = append(all, device{path.Child("hostDevices").Index(i), h.Name, h.DeviceName, h.ClaimRequest})
	}
	errs = append(errs, unique(len(all), func(i int) (string, *field.Path) {
		return all[i].name, all[i].at.Child("name")
	})...)
	for _, one := range all {
		errs = append(errs, deviceName(one.at.Child("name"), one.name)...)
		switch {
		case one.model == "" && one.claim == nil:
			errs = append(errs, field.Required(one.at.Child("deviceName"),
				"must be a resource that nodes offer, such as vendor.example/gpu, or claimName a resource claim"))
		case one.model != "" && one.claim != nil:
			errs = append(errs, field.Invalid(one.at.Child("deviceName"), short(one.model), "must be left out beside claimName"))
		}
	}
	return errs
}

func showsFirmware(g v1.GPU) bool {
	if g.VirtualGPUOptions == nil || g.VirtualGPUOptions.Display == nil {
		return false
	}
	display := g.VirtualGPUOptions.Display
	on := display.Enabled == nil || *display.Enabled
	return on && (display.RamFB == nil || enabled(display.RamFB))
}

// enabled tells whether a feature that may be listed is on: listing it turns it on.
func enabled(f *v1.FeatureState) bool { return f != nil && (f.Enabled == nil || *f.Enabled) }

// disabled tells whether a feature is turned off in so many words.
func disabled(f *v1.FeatureState) bool { return f != nil && f.Enabled != nil && !*f.Enabled }

// ioThreads checks that the policy is one there is and that a pool has threads.
func ioThreads(domain *field.Path, d *v1.DomainSpec) field.ErrorList {
	if d.IOThreadsPolicy == nil {
		return nil
	}
	path := domain.Child("ioThreadsPolicy")
	errs := oneOf(path, *d.IOThreadsPolicy, ioPolicies)
	if *d.IOThreadsPolicy != v1.IOThreadsPolicySupplementalPool {
		return errs
	}
	at := domain.Child("ioThreads", "supplementalPoolThreadCount")
	if d.IOThreads == nil || d.IOThreads.SupplementalPoolThreadCount == nil {
		return append(errs, field.Required(at, fmt.Sprintf("must be at least 1 for ioThreadsPolicy %s", *d.IOThreadsPolicy)))
	}
	if *d.IOThreads.SupplementalPoolThreadCount < 1 {
		errs = append(errs, field.Invalid(at, 0, "must be at least 1"))
	}
	return errs
}
