package validate

import (
	"fmt"
	"net/netip"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

const (
	// maxNameservers, maxSearches and maxSearchText are the limits of guests' resolvers; the last is
	// in characters, with a blank between two domains.
	maxNameservers = 3
	maxSearches    = 6
	maxSearchText  = 256
)

var unsatisfiable = []k8sv1.UnsatisfiableConstraintAction{k8sv1.DoNotSchedule, k8sv1.ScheduleAnyway}

func dns(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	errs := oneOf(path.Child("dnsPolicy"), spec.DNSPolicy, dnsPolicies)
	at := path.Child("dnsConfig")
	if spec.DNSPolicy == k8sv1.DNSNone && (spec.DNSConfig == nil || len(spec.DNSConfig.Nameservers) == 0) {
		errs = append(errs, field.Required(at.Child("nameservers"),
			"must have the address of a name server when dnsPolicy is None"))
	}
	c := spec.DNSConfig
	if c == nil {
		return errs
	}
	if len(c.Nameservers) > maxNameservers {
		errs = append(errs, field.Invalid(at.Child("nameservers"), len(c.Nameservers), fmt.Sprintf("must be at most %d", maxNameservers)))
	}
	for i, server := range c.Nameservers {
		if _, err := netip.ParseAddr(server); err != nil {
			errs = append(errs, field.Invalid(at.Child("nameservers").Index(i), short(server), "must be an IP address, such as 192.0.2.53"))
		}
	}
	if n := len(strings.Join(c.Searches, " ")); len(c.Searches) > maxSearches || n > maxSearchText {
		errs = append(errs, field.Invalid(at.Child("searches"), fmt.Sprintf("%d domains, %d characters", len(c.Searches), n),
			fmt.Sprintf("must be at most %d domains and %d characters", maxSearches, maxSearchText)))
	}
	for i, domain := range c.Searches {
		if len(validation.IsDNS1123Subdomain(strings.TrimSuffix(domain, "."))) > 0 {
			errs = append(errs, field.Invalid(at.Child("searches").Index(i), short(domain), "must be a DNS domain, such as lab.example"))
		}
	}
	for i, option := range c.Options {
		if option.Name == "" {
			errs = append(errs, field.Required(at.Child("options").Index(i).Child("name"), "must be a resolver option, such as ndots"))
		}
	}
	return errs
}

// probes checks what is asked of a guest, and that there is a way to ask it.
func probes(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	var errs field.ErrorList
	pod := len(spec.Networks) == 0 // a machine without networks is given the Pod's
	for _, n := range spec.Networks {
		pod = pod || n.Pod != nil
	}
	for _, one := range []struct {
		name string
		*v1.Probe
	}{{"livenessProbe", spec.LivenessProbe}, {"readinessProbe", spec.ReadinessProbe}} {
		if one.Probe == nil {
			continue
		}
		at := path.Child(one.name)
		errs = append(errs, exactlyOne(at, one.Handler)...)
		errs = append(errs, probePort(at, one.Handler)...)
		if one.Exec != nil && (len(one.Exec.Command) == 0 || one.Exec.Command[0] == "") {
			errs = append(errs, field.Required(at.Child("exec", "command"), "must be a program of the guest's and its arguments, such as [\"/usr/bin/test\", \"-e\", \"/run/ready\"]"))
		}
		if !pod && (one.HTTPGet != nil || one.TCPSocket != nil) {
			errs = append(errs, field.Invalid(at, strings.Join(set(one.Handler), ", "),
				"needs a network with pod: {}: use exec or guestAgentPing for a machine without"))
		}
	}
	if spec.LivenessProbe != nil && spec.StartStrategy != nil && *spec.StartStrategy == v1.StartStrategyPaused {
		errs = append(errs, field.Invalid(path.Child("startStrategy"), *spec.StartStrategy,
			"must be left out beside livenessProbe, which a paused guest would fail"))
	}
	return errs
}

// probePort wants the port that a probe asks to be one, or the name of one.
func probePort(at *field.Path, h v1.Handler) field.ErrorList {
	var errs field.ErrorList
	check := func(path *field.Path, port intstr.IntOrString) {
		if port.Type == intstr.Int && len(validation.IsValidPortNum(port.IntValue())) > 0 || port.Type == intstr.String && len(validation.IsValidPortName(port.StrVal)) > 0 {
			errs = append(errs, field.Invalid(path.Child("port"), short(port.String()), "must be from 1 to 65535, or the name of a port"))
		}
	}
	if h.HTTPGet != nil {
		check(at.Child("httpGet"), h.HTTPGet.Port)
	}
	if h.TCPSocket != nil {
		check(at.Child("tcpSocket"), h.TCPSocket.Port)
	}
	return errs
}

var (
	tolerationOperators = []k8sv1.TolerationOperator{k8sv1.TolerationOpExists, k8sv1.TolerationOpEqual, k8sv1.TolerationOpLt, k8sv1.TolerationOpGt, ""}
	taintEffects        = []k8sv1.TaintEffect{k8sv1.TaintEffectNoSchedule, k8sv1.TaintEffectPreferNoSchedule, k8sv1.TaintEffectNoExecute, ""}
)

// tolerations checks what the schema leaves open.
func tolerations(path *field.Path, list []k8sv1.Toleration) field.ErrorList {
	var errs field.ErrorList
	for i, t := range list {
		at := path.Index(i)
		errs = append(errs, oneOf(at.Child("operator"), t.Operator, tolerationOperators)...)
		errs = append(errs, oneOf(at.Child("effect"), t.Effect, taintEffects)...)
		switch {
		case t.Key == "" && t.Operator != k8sv1.TolerationOpExists:
			errs = append(errs, field.Required(at.Child("key"), "must name a taint unless operator is Exists"))
		case t.Operator == k8sv1.TolerationOpExists && t.Value != "":
			errs = append(errs, field.Invalid(at.Child("value"), short(t.Value), "must be left out where operator is Exists"))
		case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
			errs = append(errs, field.Invalid(at.Child("key"), short(t.Key), "must be the key of a taint, such as example.com/gpu"))
		}
		if t.TolerationSeconds != nil && t.Effect != k8sv1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute beside tolerationSeconds"))
		}
	}
	return errs
}

// placement checks the parts of scheduling rules that the schema leaves open.
func placement(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	errs := tolerations(path.Child("tolerations"), spec.Tolerations)
	if spec.SchedulerName != "" && len(validation.IsDNS1123Subdomain(spec.SchedulerName)) > 0 {
		errs = append(errs, field.Invalid(path.Child("schedulerName"), short(spec.SchedulerName), "must be the name of a scheduler, such as default-scheduler"))
	}
	for i, c := range spec.TopologySpreadConstraints {
		at := path.Child("topologySpreadConstraints").Index(i)
		if c.MaxSkew < 1 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be at least 1"))
		}
		errs = append(errs, topologyKey(at.Child("topologyKey"), c.TopologyKey)...)
		errs = append(errs, oneOf(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, unsatisfiable)...)
		errs = append(errs, selector(at.Child("labelSelector"), c.LabelSelector)...)
	}
	if spec.Affinity == nil {
		return errs
	}
	at := path.Child("affinity")
	errs = append(errs, nodeAffinity(at.Child("nodeAffinity"), spec.Affinity.NodeAffinity)...)
	if a := spec.Affinity.PodAffinity; a != nil {
		errs = append(errs, podTerms(at.Child("podAffinity"), a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		errs = append(errs, podTerms(at.Child("podAntiAffinity"), a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	return errs
}

func nodeAffinity(path *field.Path, a *k8sv1.NodeAffinity) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		at := path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		if len(r.NodeSelectorTerms) == 0 {
			errs = append(errs, field.Required(at, "must have at least one term"))
		}
		for i, term := range r.NodeSelectorTerms {
			errs = append(errs, nodeTerm(at.Index(i), term)...)
		}
	}
	for i, p := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		errs = append(errs, weight(at.Child("weight"), p.Weight)...)
		errs = append(errs, nodeTerm(at.Child("preference"), p.Preference)...)
	}
	return errs
}

var nodeOperators = []k8sv1.NodeSelectorOperator{
	k8sv1.NodeSelectorOpIn, k8sv1.NodeSelectorOpNotIn, k8sv1.NodeSelectorOpExists, k8sv1.NodeSelectorOpDoesNotExist,
	k8sv1.NodeSelectorOpGt, k8sv1.NodeSelectorOpLt,
}

func nodeTerm(path *field.Path, term k8sv1.NodeSelectorTerm) field.ErrorList {
	var errs field.ErrorList
	for i, e := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		if wrong := validation.IsQualifiedName(e.Key); len(wrong) > 0 {
			errs = append(errs, field.Invalid(at.Child("key"), short(e.Key), "must be the key of a node label: "+strings.Join(wrong, ", ")))
		}
		if e.Operator == "" {
			errs = append(errs, field.Required(at.Child("operator"), "must be given, such as In"))
		}
		errs = append(errs, oneOf(at.Child("operator"), e.Operator, nodeOperators)...)
		named := e.Operator == k8sv1.NodeSelectorOpExists || e.Operator == k8sv1.NodeSelectorOpDoesNotExist
		if named != (len(e.Values) == 0) && e.Operator != "" {
			errs = append(errs, field.Invalid(at.Child("values"), len(e.Values), "must be given for In, NotIn, Gt and Lt, and for those only"))
		}
	}
	return errs
}

func podTerms(path *field.Path, required []k8sv1.PodAffinityTerm, preferred []k8sv1.WeightedPodAffinityTerm) field.ErrorList {
	var errs field.ErrorList
	term := func(at *field.Path, t k8sv1.PodAffinityTerm) {
		errs = append(errs, topologyKey(at.Child("topologyKey"), t.TopologyKey)...)
		errs = append(errs, selector(at.Child("labelSelector"), t.LabelSelector)...)
	}
	for i, t := range required {
		term(path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i), t)
	}
	for i, p := range preferred {
		at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		errs = append(errs, weight(at.Child("weight"), p.Weight)...)
		term(at.Child("podAffinityTerm"), p.PodAffinityTerm)
	}
	return errs
}

func weight(path *field.Path, n int32) field.ErrorList {
	if n >= 1 && n <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, n, "must be from 1 to 100")}
}

func topologyKey(path *field.Path, key string) field.ErrorList {
	if len(validation.IsQualifiedName(key)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, short(key), "must be the key of a node label, such as kubernetes.io/hostname")}
}

// selector wants one that Kubernetes takes; nil selects nothing and is right.
func selector(path *field.Path, s *metav1.LabelSelector) field.ErrorList {
	return ordered(metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path))
}
