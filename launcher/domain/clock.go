package domain

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"

	"virtstack.io/virtstack/machine/timezone"
)

func (c *converter) clock() *libvirtxml.DomainClock {
	clock := c.spec().Clock
	d := &libvirtxml.DomainClock{Offset: "utc"}
	if clock == nil {
		clock = &v1.Clock{}
	}
	d.Timer = append(c.timers(clock.Timer), c.tsc()...)
	switch {
	case clock.Timezone != nil:
		if !timezone.Known(string(*clock.Timezone)) {
			c.refuse(field.Invalid(c.path.Child("clock", "timezone"), *clock.Timezone, "must be the name of a time zone in the tz database, such as Europe/Berlin"))
		}
		d.Offset, d.TimeZone = "timezone", string(*clock.Timezone)
	case clock.UTC != nil && clock.UTC.OffsetSeconds != nil:
		d.Adjustment = strconv.Itoa(*clock.UTC.OffsetSeconds)
	case clock.UTC != nil:
		d.Adjustment = "reset"
	case len(d.Timer) == 0 && c.spec().Clock == nil:
		return nil
	}
	return d
}

func (c *converter) timers(t *v1.Timer) []libvirtxml.DomainTimer {
	if t == nil {
		return nil
	}
	var l []libvirtxml.DomainTimer
	if t.RTC != nil {
		l = append(l, libvirtxml.DomainTimer{Name: "rtc", Track: string(t.RTC.Track), TickPolicy: string(t.RTC.TickPolicy), Present: yesNo(t.RTC.Enabled)})
	}
	if t.PIT != nil {
		l = append(l, libvirtxml.DomainTimer{Name: "pit", TickPolicy: string(t.PIT.TickPolicy), Present: yesNo(t.PIT.Enabled)})
	}
	if t.KVM != nil && c.facts.KVM {
		l = append(l, libvirtxml.DomainTimer{Name: "kvmclock", Present: yesNo(t.KVM.Enabled)})
	}
	if t.HPET != nil {
		l = append(l, libvirtxml.DomainTimer{Name: "hpet", TickPolicy: string(t.HPET.TickPolicy), Present: yesNo(t.HPET.Enabled)})
	}
	if t.Hyperv != nil && c.facts.KVM {
		l = append(l, libvirtxml.DomainTimer{Name: "hypervclock", Present: yesNo(t.Hyperv.Enabled)})
	}
	return l
}

// tsc pins the frequency that the guest's time stamp counter had where it first ran.
func (c *converter) tsc() []libvirtxml.DomainTimer {
	hints := c.vmi.Status.TopologyHints
	if hints == nil || hints.TSCFrequency == nil || *hints.TSCFrequency <= 0 || !c.facts.KVM {
		return nil
	}
	return []libvirtxml.DomainTimer{{Name: "tsc", Frequency: uint64(*hints.TSCFrequency)}}
}
