package validate_test

import "testing"

func TestClock(t *testing.T) {
	tables{
		"zone":       {`{domain: {clock: {timezone: Europe/Berlin, timer: {rtc: {tickPolicy: catchup, track: wall}, hpet: {tickPolicy: merge}}}}}`, nil},
		"path":       {`{domain: {clock: {timezone: ../etc/passwd}}}`, []string{`domain.clock.timezone "../etc/passwd": must be the name of a time zone`}},
		"no zone":    {`{domain: {clock: {timezone: Europe/Bielefeld}}}`, []string{`domain.clock.timezone "Europe/Bielefeld": must be the name of a time zone in the tz database, such as Europe/Berlin`}},
		"empty zone": {`{domain: {clock: {timezone: ""}}}`, []string{`domain.clock.timezone "": must be the name of a time zone`}},
		"near zone":  {`{domain: {clock: {timezone: america/new york}}}`, []string{`domain.clock.timezone "america/new york": must be the name of a time zone in the tz database: did you mean America/New_York?`}},
		"no year":    {`{domain: {clock: {utc: {offsetSeconds: 999999999999}}}}`, []string{"domain.clock.utc.offsetSeconds 999999999999: must be at most 31536000000"}},
		"two starts": {`{domain: {clock: {timezone: UTC, utc: {}}}}`, []string{`domain.clock "timezone, utc": must have only one of these`}},
		"policies": {`{domain: {clock: {timer: {rtc: {tickPolicy: merge, track: sun}, pit: {tickPolicy: merge}, hpet: {tickPolicy: drop}}}}}`,
			[]string{"domain.clock.timer.hpet.tickPolicy", "domain.clock.timer.pit.tickPolicy", "domain.clock.timer.rtc.tickPolicy", "domain.clock.timer.rtc.track"}},
	}.run(t)
}

// What the guest reads is written into XML.
func TestTextForTheGuest(t *testing.T) {
	tables{
		"words":       {`{domain: {chassis: {manufacturer: "ACME & <sons>", sku: "1'2"}}}`, nil},
		"control":     {`{domain: {chassis: {sku: "a\nb", asset: "c\u0001"}}}`, []string{"domain.chassis.asset must be text without control", "domain.chassis.sku must be text without control"}},
		"vendor":      {`{domain: {features: {hyperv: {vendorid: {vendorid: KVMKVMKVM}, spinlocks: {spinlocks: 8191}}}}}`, nil},
		"long vendor": {`{domain: {features: {hyperv: {vendorid: {vendorid: more than twelve}}}}}`, []string{"domain.features.hyperv.vendorid.vendorid must be 1 to 12 characters"}},
		"spin":        {`{domain: {features: {hyperv: {spinlocks: {spinlocks: 1}}}}}`, []string{"domain.features.hyperv.spinlocks.spinlocks must be at least 4095"}},
		"names": {`{domain: {devices: {watchdog: {name: "."}, inputs: [{name: "'/>", type: tablet}]}}}`,
			[]string{"domain.devices.inputs[0].name must be letters", "domain.devices.watchdog.name must be letters"}},
	}.run(t)
}

// libvirt takes no two devices of one name.
func TestNamesOfDevices(t *testing.T) {
	tables{
		"disk and watchdog": {`{domain: {devices: {watchdog: {name: root}}}}`, []string{"domain.devices.watchdog.name must be another name than that of spec.template.spec.domain.devices.disks[0].name"}},
		"two inputs":        {`{domain: {devices: {inputs: [{name: a, type: tablet}, {name: a, type: tablet}]}}}`, []string{"domain.devices.inputs[1].name must be another name"}},
		"disk and interface": {`{domain: {devices: {disks: [{name: net}], interfaces: [{name: net, masquerade: {}}]}}, volumes: [{name: net, emptyDisk: {capacity: 1Gi}}]}`,
			[]string{"domain.devices.interfaces[0].name must be another name"}},
	}.run(t)
}
