package validate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/timezone"
)

// maxOffset keeps the guest's first date one that QEMU can read, with a year of four digits.
const maxOffset = 1000 * 365 * 24 * 3600

// clock checks where the guest's time starts from, and what its timers do with ticks that they missed.
func clock(path *field.Path, c *v1.Clock) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	if c.Timezone != nil {
		errs = append(errs, zone(path.Child("timezone"), string(*c.Timezone))...)
	}
	if c.Timezone != nil && c.UTC != nil {
		errs = append(errs, tooMany(path, []string{"timezone", "utc"})...)
	}
	if u := c.UTC; u != nil && u.OffsetSeconds != nil && (*u.OffsetSeconds > maxOffset || *u.OffsetSeconds < -maxOffset) {
		errs = append(errs, field.Invalid(path.Child("utc", "offsetSeconds"), *u.OffsetSeconds,
			fmt.Sprintf("must be at most %d, a thousand years, either way", maxOffset)))
	}
	t, at := c.Timer, path.Child("timer")
	if t == nil {
		return errs
	}
	if t.HPET != nil {
		errs = append(errs, oneOf(at.Child("hpet", "tickPolicy"), t.HPET.TickPolicy,
			[]v1.HPETTickPolicy{v1.HPETTickPolicyDelay, v1.HPETTickPolicyCatchup, v1.HPETTickPolicyMerge, v1.HPETTickPolicyDiscard})...)
	}
	if t.PIT != nil {
		errs = append(errs, oneOf(at.Child("pit", "tickPolicy"), t.PIT.TickPolicy,
			[]v1.PITTickPolicy{v1.PITTickPolicyDelay, v1.PITTickPolicyCatchup, v1.PITTickPolicyDiscard})...)
	}
	if t.RTC != nil {
		errs = append(errs, oneOf(at.Child("rtc", "tickPolicy"), t.RTC.TickPolicy, []v1.RTCTickPolicy{v1.RTCTickPolicyDelay, v1.RTCTickPolicyCatchup})...)
		errs = append(errs, oneOf(at.Child("rtc", "track"), t.RTC.Track, []v1.RTCTimerTrack{v1.TrackGuest, v1.TrackWall})...)
	}
	return errs
}

// zone wants a time zone that there is: the guest's clock would silently show UTC.
func zone(path *field.Path, name string) field.ErrorList {
	if timezone.Known(name) {
		return nil
	}
	right := "must be the name of a time zone in the tz database, such as Europe/Berlin"
	if meant := timezone.Meant(name); meant != "" {
		right = fmt.Sprintf("must be the name of a time zone in the tz database: did you mean %s?", meant)
	}
	return field.ErrorList{field.Invalid(path, short(name), right)}
}

// chassis checks what the guest reads about its case.
func chassis(path *field.Path, c *v1.Chassis) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	for _, one := range []struct{ name, value string }{
		{"manufacturer", c.Manufacturer}, {"version", c.Version}, {"serial", c.Serial}, {"asset", c.Asset}, {"sku", c.Sku},
	} {
		errs = append(errs, text(path.Child(one.name), one.value)...)
	}
	return errs
}

// text wants what can be written as XML and fits the tables of SMBIOS.
func text(path *field.Path, s string) field.ErrorList {
	if len(s) > maxSerial || strings.ContainsFunc(s, unwritable) {
		return field.ErrorList{field.Invalid(path, short(s), "must be text without control characters, at most 256 bytes")}
	}
	return nil
}

// unwritable tells the characters that can't be written as XML, or that nobody means.
func unwritable(r rune) bool {
	return r < ' ' || r == 0x7f || r == '\uFFFD' || r == '\uFFFE' || r == '\uFFFF'
}
