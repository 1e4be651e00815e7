package validate_test

import (
	"fmt"
	"testing"

	"virtstack.io/virtstack/machine/validate"
)

func TestNetworks(t *testing.T) {
	tables{
		"none":            {`{networks: null, domain: {devices: {interfaces: null}}}`, nil},
		"interface alone": {`{networks: null}`, []string{`domain.devices.interfaces[0].name "net": must be the name of one of the machine's networks`}},
		"network alone":   {`{domain: {devices: {interfaces: null}}}`, []string{`networks[0].name network "net" must have an interface`}},
		"same interface": {`{domain: {devices: {interfaces: [{name: net, masquerade: {}}, {name: net, masquerade: {}}]}}}`,
			[]string{"domain.devices.interfaces[1].name interfaces[0].name has it too"}},
		"capitals": {`{networks: [{name: Net_1, pod: {}}], domain: {devices: {interfaces: [{name: Net_1, masquerade: {}}]}}}`, nil},
		"path for a name": {`{networks: [{name: a/b, pod: {}}], domain: {devices: {interfaces: [{name: a/b, masquerade: {}}]}}}`,
			[]string{`domain.devices.interfaces[0].name "a/b": must be letters`, "networks[0].name must be letters"}},
		"no source":   {`{networks: [{name: net}]}`, []string{"domain.devices.interfaces[0].masquerade pod: {}", "networks[0] must have one of pod, multus"}},
		"two sources": {`{networks: [{name: net, pod: {}, multus: {networkName: lan}}]}`, []string{"networks[0] pod, multus"}},
		"two Pod networks": {`{networks: [{name: net, pod: {}}, {name: b, pod: {}}], domain: {devices: {interfaces: [{name: net, masquerade: {}}, {name: b, bridge: {}}]}}}`,
			[]string{"networks[1] must be the only network that is pod or a default multus: spec.template.spec.networks[0]"}},
		"multus":      {`{networks: [{name: net, multus: {networkName: a/n}}], domain: {devices: {interfaces: [{name: net, bridge: {}}]}}}`, nil},
		"no multus":   {`{networks: [{name: net, multus: {networkName: ""}}], domain: {devices: {interfaces: [{name: net, bridge: {}}]}}}`, []string{"networks[0].multus.networkName Required"}},
		"masqueraded": {`{networks: [{name: net, multus: {networkName: lan}}]}`, []string{"domain.devices.interfaces[0].masquerade must be of a network with pod: {}"}},
	}.run(t)
}

func TestInterfaces(t *testing.T) {
	nic := func(rest string) string {
		return `{domain: {devices: {interfaces: [{name: net, ` + rest + `}]}}}`
	}
	const at = "domain.devices.interfaces[0]"
	tables{
		"bridge":                 {nic(`bridge: {}`), nil},
		"plugin":                 {nic(`binding: {name: mine}`), nil},
		"no binding":             {nic(`model: virtio`), []string{at + " masquerade: {} is right for the Pod network"}},
		"a preference's binding": {`spec: {preference: {name: p}, template: {spec: ` + nic(`model: virtio`) + `}}`, nil},
		"two bindings":           {nic(`masquerade: {}, bridge: {}`), []string{at + " bridge, masquerade"}},
		"and a plugin":           {nic(`masquerade: {}, binding: {name: mine}`), []string{at + " masquerade, binding"}},
		"slirp":                  {nic(`slirp: {}`), []string{at + ".slirp is discontinued"}},
		"model":                  {nic(`masquerade: {}, model: wifi`), []string{at + `.model "wifi": supported values: "virtio", "e1000"`}},
		"state":                  {nic(`masquerade: {}, state: sideways`), []string{at + `.state "sideways"`}},
		"pci":                    {nic(`masquerade: {}, pciAddress: "0000:81:01.9"`), []string{at + ".pciAddress 0000:81:01.0"}},
		"port":                   {nic(`masquerade: {}, ports: [{port: 80, name: http, protocol: TCP}]`), nil},
		"no port":                {nic(`masquerade: {}, ports: [{port: 0}]`), []string{at + ".ports[0].port from 1 to 65535"}},
		"high port":              {nic(`masquerade: {}, ports: [{port: 65536}]`), []string{at + ".ports[0].port 65536: must be a port"}},
		"protocol":               {nic(`masquerade: {}, ports: [{port: 1, protocol: ICMP}]`), []string{at + `.ports[0].protocol "ICMP"`}},
		"port name":              {nic(`masquerade: {}, ports: [{port: 1, name: A}]`), []string{at + `.ports[0].name "A"`}},
		"same port":              {nic(`masquerade: {}, ports: [{port: 1, name: a}, {port: 2, name: a}]`), []string{at + ".ports[1].name ports[0] has it too"}},
		"same port of two": {`{networks: [{name: net, pod: {}}, {name: b, multus: {networkName: lan}}], domain: {devices: {interfaces: [
			{name: net, masquerade: {}, ports: [{port: 1, name: a}]}, {name: b, bridge: {}, ports: [{port: 2, name: a}]}]}}}`,
			[]string{"domain.devices.interfaces[1].ports[0].name interfaces[0].ports[0] has it too"}},
		"multicast MAC": {nic(`masquerade: {}, macAddress: "01:00:5e:00:53:0a"`), []string{at + ".macAddress group address"}},
	}.run(t)
}

func TestMACSpellings(t *testing.T) {
	right := []string{"02:00:5e:00:53:0a", "02:00:5E:00:53:0A", "02-00-5e-00-53-0a", "0200.5e00.530a"}
	wrong := []string{
		"02:00:5e:00:53", "02:00:5e:00:53:0a:0b:0c", "02:00:5e:00:53:0g", "01:00:5e:00:53:0a", "02:00:00:00:00:00",
		"00:00:00:00:00:00", "02:00:5e:00:53:-a", "2:00:5e:00:53:0aa", "02:00-5e:00:53:0a",
	}
	over := `{domain: {devices: {interfaces: [{name: net, masquerade: {}, macAddress: %q}]}}}`
	for _, mac := range right {
		t.Run(mac, func(t *testing.T) { expect(t, validate.VM(parse(t, fmt.Sprintf(over, mac))), nil) })
	}
	for _, mac := range wrong {
		t.Run(mac, func(t *testing.T) {
			errs := validate.VM(parse(t, fmt.Sprintf(over, mac)))
			expect(t, errs, []string{fmt.Sprintf("domain.devices.interfaces[0].macAddress %q", mac)})
			expect(t, errs, []string{"domain.devices.interfaces[0].macAddress such as 02:00:5e:00:53:0a"})
		})
	}
	twins := `{networks: [{name: net, pod: {}}, {name: b, multus: {networkName: lan}}], domain: {devices: {interfaces: [
		{name: net, masquerade: {}, macAddress: "02:00:5e:00:53:0a"}, {name: b, bridge: {}, macAddress: "02-00-5E-00-53-0A"}]}}}`
	expect(t, validate.VM(parse(t, twins)), []string{`domain.devices.interfaces[1].macAddress interface "b" must not have the address of interface "net"`})
}
