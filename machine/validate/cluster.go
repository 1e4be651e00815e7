package validate

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	instancetype "kubevirt.io/api/instancetype/v1beta1"

	"virtstack.io/virtstack/machine/config"
)

func sortErrors(errs field.ErrorList) {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
}

func policy(p, _ *policyKind, _ config.Config) Verdict {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if t := p.Spec.CompletionTimeoutPerGiB; t != nil && *t < 0 {
		errs = append(errs, field.Invalid(path.Child("completionTimeoutPerGiB"), *t, "must be 0 or more seconds"))
	}
	if b := p.Spec.BandwidthPerMigration; b != nil && b.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("bandwidthPerMigration"), b.String(), "must be 0 or more bytes a second"))
	}
	return Verdict{Errors: errs}
}

const vmiNameLabel = "kubevirt.io/vmi-name"

func migration(m, old *v1.VirtualMachineInstanceMigration, c config.Config) Verdict {
	path := field.NewPath("spec")
	if old != nil {
		var errs field.ErrorList
		if len(immutable(m.Spec, old.Spec)) > 0 {
			errs = append(errs, &field.Error{Type: field.ErrorTypeNotSupported, Field: path.String(), BadValue: field.OmitValueType{},
				Detail: "update of Migration object's spec is restricted: make another migration"})
		}
		if was, had := old.Labels[vmiNameLabel]; had && m.Labels[vmiNameLabel] != was {
			errs = append(errs, &field.Error{Type: field.ErrorTypeNotSupported, Field: "metadata.labels[" + vmiNameLabel + "]",
				BadValue: m.Labels[vmiNameLabel], Detail: fmt.Sprintf("must stay %q", was)})
		}
		return Verdict{Errors: errs}
	}
	errs := named(path.Child("vmiName"), m.Spec.VMIName)
	if m.Spec.Priority != nil && !c.Enabled("MigrationPriorityQueue") {
		errs = append(errs, field.Forbidden(path.Child("migrationPriority"), "needs the feature gate MigrationPriorityQueue: remove priority"))
	}
	send, receive := m.Spec.SendTo, m.Spec.Receive
	if (send != nil || receive != nil) && !c.Enabled("DecentralizedLiveMigration") {
		errs = append(errs, &field.Error{Type: field.ErrorTypeNotSupported, Field: path.String(), BadValue: field.OmitValueType{},
			Detail: "sendTo and receive need the feature gate DecentralizedLiveMigration: remove them"})
	}
	if send != nil && receive != nil && send.MigrationID != receive.MigrationID {
		errs = append(errs, field.Invalid(path.Child("receive", "migrationID"), short(receive.MigrationID),
			fmt.Sprintf("must be that of sendTo, %s", short(send.MigrationID))))
	}
	return Verdict{Errors: errs}
}

func namespacedInstancetype(i, _ *instancetypeOne, _ config.Config) Verdict {
	return Verdict{Errors: instancetypeSpec(&i.Spec)}
}

func clusterInstancetype(i, _ *instancetype.VirtualMachineClusterInstancetype, _ config.Config) Verdict {
	return Verdict{Errors: instancetypeSpec(&i.Spec)}
}

func instancetypeSpec(s *instancetype.VirtualMachineInstancetypeSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := amount(path.Child("memory", "guest"), s.Memory.Guest, minMemory)
	if s.CPU.Guest == 0 {
		errs = append(errs, field.Invalid(path.Child("cpu", "guest"), 0, "must be at least 1"))
	}
	at := path.Child("memory", "overcommitPercent")
	if p := s.Memory.OvercommitPercent; p < 0 || p > 100 {
		errs = append(errs, field.Invalid(at, p, "must be from 0 to 100"))
	} else if p != 0 && s.Memory.Hugepages != nil {
		errs = append(errs, field.Invalid(at, p, "must be left out beside hugepages, which can't be overcommitted"))
	}
	return append(errs, hugepages(path.Child("memory", "hugepages", "pageSize"), s.Memory.Hugepages, &s.Memory.Guest)...)
}

func namespacedPreference(p, _ *preferenceOne, _ config.Config) Verdict {
	return preferenceSpec(&p.Spec)
}

func clusterPreference(p, _ *instancetype.VirtualMachineClusterPreference, _ config.Config) Verdict {
	return preferenceSpec(&p.Spec)
}

// topologies are the right names by what is deprecated.
var (
	topologies = []instancetype.PreferredCPUTopology{instancetype.Cores, instancetype.Sockets, instancetype.Threads,
		instancetype.Spread, instancetype.Any}
	oldTopologies = map[instancetype.PreferredCPUTopology]instancetype.PreferredCPUTopology{
		instancetype.DeprecatedPreferCores: instancetype.Cores, instancetype.DeprecatedPreferSockets: instancetype.Sockets,
		instancetype.DeprecatedPreferThreads: instancetype.Threads, instancetype.DeprecatedPreferSpread: instancetype.Spread,
		instancetype.DeprecatedPreferAny: instancetype.Any,
	}
	spreads = []instancetype.SpreadAcross{instancetype.SpreadAcrossSocketsCoresThreads, instancetype.SpreadAcrossSocketsCores,
		instancetype.SpreadAcrossCoresThreads}
)

func preferenceSpec(s *instancetype.VirtualMachinePreferenceSpec) Verdict {
	v := Verdict{}
	if c := s.Clock; c != nil && c.PreferredClockOffset != nil && c.PreferredClockOffset.Timezone != nil {
		at := field.NewPath("spec", "clock", "preferredClockOffset", "timezone")
		v.Errors = zone(at, string(*c.PreferredClockOffset.Timezone))
	}
	if s.CPU == nil {
		return v
	}
	path := field.NewPath("spec", "cpu")
	if t := s.CPU.PreferredCPUTopology; t != nil {
		if right, old := oldTopologies[*t]; old {
			v.Warnings = append(v.Warnings, fmt.Sprintf("spec.cpu.preferredCPUTopology %s is deprecated, please use %s instead.", *t, right))
		} else {
			v.Errors = append(v.Errors, oneOf(path.Child("preferredCPUTopology"), *t, topologies)...)
		}
	}
	o := s.CPU.SpreadOptions
	if o == nil {
		return v
	}
	at := path.Child("spreadOptions")
	if o.Across != nil {
		v.Errors = append(v.Errors, oneOf(at.Child("across"), *o.Across, spreads)...)
	}
	if o.Ratio != nil && *o.Ratio == 0 {
		v.Errors = append(v.Errors, field.Invalid(at.Child("ratio"), 0, "must be at least 1"))
	}
	threads := o.Across != nil && *o.Across == instancetype.SpreadAcrossCoresThreads
	if threads && o.Ratio != nil && *o.Ratio != 2 {
		v.Errors = append(v.Errors, field.Invalid(at.Child("ratio"), *o.Ratio, "must be 2 across CoresThreads: a core has two threads"))
	}
	return v
}

// kubeVirt checks the configuration. That there is one KubeVirt only is for who sees the cluster.
func kubeVirt(kv, _ *v1.KubeVirt, _ config.Config) Verdict {
	path, k := field.NewPath("spec"), &kv.Spec.Configuration
	var errs field.ErrorList
	for i, p := range kv.Spec.CustomizeComponents.Patches {
		if !json.Valid([]byte(p.Patch)) {
			errs = append(errs, field.Invalid(path.Child("customizeComponents", "patches").Index(i).Child("patch"), short(p.Patch), "must be JSON"))
		}
	}
	if i := kv.Spec.Infra; i != nil && i.Replicas != nil && *i.Replicas == 0 {
		errs = append(errs, field.Invalid(path.Child("infra", "replicas"), 0, "must be at least 1"))
	}
	errs = append(errs, words(path, &kv.Spec)...)
	errs = append(errs, ratio(path.Child("configuration", "additionalGuestMemoryOverheadRatio"), k.AdditionalGuestMemoryOverheadRatio)...)
	if d := k.DeveloperConfiguration; d != nil {
		at := path.Child("configuration", "developerConfiguration", "disabledFeatureGates")
		for i, gate := range d.DisabledFeatureGates {
			if slices.Contains(d.FeatureGates, gate) {
				errs = append(errs, field.Invalid(at.Index(i), short(gate), "must not be in featureGates too"))
			}
		}
	}
	errs = append(errs, seccomp(path.Child("configuration", "seccompConfiguration"), k.SeccompConfiguration)...)
	errs = append(errs, ciphers(path.Child("configuration", "tlsConfiguration"), k.TLSConfiguration)...)
	errs = append(errs, rotation(path.Child("certificateRotateStrategy", "selfSigned"), kv.Spec.CertificateRotationStrategy.SelfSigned)...)
	errs = append(errs, components(path.Child("infra", "nodePlacement"), kv.Spec.Infra)...)
	errs = append(errs, components(path.Child("workloads", "nodePlacement"), kv.Spec.Workloads)...)
	return Verdict{Errors: append(errs, needGates(path.Child("configuration"), kv)...), Warnings: config.Ignored(kv)}
}

// words checks what is one of a few.
func words(path *field.Path, s *v1.KubeVirtSpec) field.ErrorList {
	pulls := []k8sv1.PullPolicy{k8sv1.PullAlways, k8sv1.PullIfNotPresent, k8sv1.PullNever}
	errs := oneOf(path.Child("imagePullPolicy"), s.ImagePullPolicy, pulls)
	errs = append(errs, oneOf(path.Child("configuration", "imagePullPolicy"), s.Configuration.ImagePullPolicy, pulls)...)
	errs = append(errs, oneOf(path.Child("uninstallStrategy"), s.UninstallStrategy, []v1.KubeVirtUninstallStrategy{
		v1.KubeVirtUninstallStrategyRemoveWorkloads, v1.KubeVirtUninstallStrategyBlockUninstallIfWorkloadsExist})...)
	for i, method := range s.WorkloadUpdateStrategy.WorkloadUpdateMethods {
		errs = append(errs, oneOf(path.Child("workloadUpdateStrategy", "workloadUpdateMethods").Index(i), method,
			[]v1.WorkloadUpdateMethod{v1.WorkloadUpdateMethodLiveMigrate, v1.WorkloadUpdateMethodEvict})...)
	}
	return errs
}

func ratio(path *field.Path, r *string) field.ErrorList {
	if r == nil {
		return nil
	}
	if f, err := strconv.ParseFloat(*r, 64); err != nil || !(f >= 1) || math.IsInf(f, 0) {
		return field.ErrorList{field.Invalid(path, short(*r), "must be a number of at least 1, such as 1.25")}
	}
	return nil
}

// tls12 are the cipher suites that TLS 1.2 has and that are still held to be safe; TLS 1.3 has no choice of them.
var tls12 = []string{
	"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
	"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
}

func ciphers(path *field.Path, t *v1.TLSConfiguration) field.ErrorList {
	if t == nil || len(t.Ciphers) == 0 {
		return nil
	}
	if t.MinTLSVersion != v1.VersionTLS12 {
		return field.ErrorList{field.Invalid(path.Child("ciphers"), strings.Join(t.Ciphers, ", "), "must be left out unless minTLSVersion is VersionTLS12")}
	}
	var errs field.ErrorList
	for i, name := range t.Ciphers {
		errs = append(errs, oneOf(path.Child("ciphers").Index(i), name, tls12)...)
	}
	return errs
}

// rotation checks that certificates are renewed before they end, and that none outlives its authority.
func rotation(path *field.Path, s *v1.KubeVirtSelfSignConfiguration) field.ErrorList {
	if s == nil {
		return nil
	}
	old := s.CARotateInterval != nil || s.CertRotateInterval != nil || s.CAOverlapInterval != nil
	if old && (s.CA != nil || s.Server != nil) {
		return field.ErrorList{field.Invalid(path, "caRotateInterval, certRotateInterval, caOverlapInterval", "must be left out beside ca and server")}
	}
	var errs field.ErrorList
	for _, one := range []struct {
		name string
		*v1.CertConfig
	}{{"ca", s.CA}, {"server", s.Server}} {
		if c := one.CertConfig; c != nil && c.Duration != nil && c.RenewBefore != nil && c.RenewBefore.Duration > c.Duration.Duration {
			errs = append(errs, field.Invalid(path.Child(one.name, "renewBefore"), c.RenewBefore.Duration.String(),
				"must be at most the duration, "+c.Duration.Duration.String()))
		}
	}
	if s.CA != nil && s.Server != nil && s.CA.Duration != nil && s.Server.Duration != nil && s.Server.Duration.Duration > s.CA.Duration.Duration {
		errs = append(errs, field.Invalid(path.Child("server", "duration"), s.Server.Duration.Duration.String(),
			"must be at most that of the authority, "+s.CA.Duration.Duration.String()))
	}
	return errs
}
