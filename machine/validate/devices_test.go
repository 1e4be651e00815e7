package validate_test

import "testing"

func TestDevices(t *testing.T) {
	with := func(devices string) string { return `{domain: {devices: {` + devices + `}}}` }
	on := func(arch, devices string) string {
		return `{architecture: ` + arch + `, domain: {devices: {` + devices + `}}}`
	}
	const at = "domain.devices."
	tables{
		"tablet":          {with(`inputs: [{name: t, type: tablet, bus: usb}]`), nil},
		"keyboard":        {with(`inputs: [{name: t, type: keyboard, bus: ps2}]`), []string{at + `inputs[0].bus "ps2"`, at + `inputs[0].type "keyboard"`}},
		"sound":           {with(`sound: {name: s, model: ac97}`), nil},
		"sound, no name":  {with(`sound: {model: sb16}`), []string{at + `sound.model "sb16"`, at + "sound.name Required"}},
		"sound on arm":    {on("arm64", `sound: {name: s}`), []string{at + "sound arm64 machines have no sound"}},
		"video":           {with(`video: {type: bochs}`), nil},
		"odd video":       {on("s390x", `video: {type: vga}`), []string{at + `video.type "vga": supported values: "virtio"`}},
		"unseen video":    {with(`autoattachGraphicsDevice: false, video: {type: vga}`), []string{at + "video without graphics"}},
		"watchdog":        {with(`watchdog: {name: w, i6300esb: {action: reset}}`), nil},
		"watchdog's end":  {with(`watchdog: {name: w, i6300esb: {action: bark}}`), []string{at + `watchdog.i6300esb.action "bark"`}},
		"other watchdog":  {with(`watchdog: {name: w, diag288: {}}`), []string{at + `watchdog "diag288": supported values: "i6300esb"`}},
		"arm's watchdog":  {on("arm64", `watchdog: {name: w, i6300esb: {}}`), []string{at + "watchdog no watchdog"}},
		"panic":           {with(`panicDevices: [{model: isa}]`), nil},
		"panic by chance": {with(`panicDevices: [{}]`), []string{at + "panicDevices[0].model must be hyperv, isa or pvpanic"}},
		"odd panic":       {with(`panicDevices: [{model: loud}]`), []string{at + `panicDevices[0].model "loud"`}},
		"no panic":        {on("s390x", `panicDevices: [{model: isa}]`), []string{at + "panicDevices[0] s390x has no such device"}},
		"gpu":             {with(`gpus: [{name: g, deviceName: vendor.example/gpu}]`), nil},
		"gpu, no device":  {with(`gpus: [{name: g}]`), []string{at + "gpus[0].deviceName Required"}},
		"two displays": {with(`gpus: [{name: a, deviceName: x/y, virtualGPUOptions: {display: {}}}, {name: b, deviceName: x/y, virtualGPUOptions: {display: {}}}]`),
			[]string{at + "gpus[1].virtualGPUOptions.display.ramFB one display only"}},
		"one name twice": {with(`gpus: [{name: a, deviceName: x/y}], hostDevices: [{name: a, deviceName: x/z}]`), []string{at + "hostDevices[0].name gpus[0].name has it too"}},
		"threads":        {`{domain: {ioThreadsPolicy: supplementalPool, ioThreads: {supplementalPoolThreadCount: 2}}}`, nil},
		"no pool":        {`{domain: {ioThreadsPolicy: supplementalPool}}`, []string{"domain.ioThreads.supplementalPoolThreadCount Required"}},
		"odd policy":     {`{domain: {ioThreadsPolicy: many}}`, []string{`domain.ioThreadsPolicy "many"`}},
	}.run(t)
}

func TestDedicatedCPUs(t *testing.T) {
	tables{
		"counted":     {`{domain: {cpu: {dedicatedCpuPlacement: true, cores: 2}}}`, nil},
		"asked for":   {`{domain: {cpu: {dedicatedCpuPlacement: true}, resources: {requests: {cpu: 2}}}}`, nil},
		"neither":     {`{domain: {cpu: {dedicatedCpuPlacement: true}}}`, []string{"domain.cpu resources.requests.cpu"}},
		"half":        {`{domain: {cpu: {dedicatedCpuPlacement: true}, resources: {limits: {cpu: 1500m}}}}`, []string{`domain.resources.limits.cpu "1500m": must be whole CPUs`}},
		"other count": {`{domain: {cpu: {dedicatedCpuPlacement: true, cores: 3}, resources: {limits: {cpu: 2}}}}`, []string{"domain.resources.limits.cpu must be 3"}},
		"two amounts": {`{domain: {cpu: {dedicatedCpuPlacement: true}, resources: {requests: {cpu: 2}, limits: {cpu: 4}}}}`, []string{"domain.resources.requests.cpu must be the limit, 4"}},
		"threads":     {`{domain: {cpu: {dedicatedCpuPlacement: true, threads: 4}}}`, []string{"domain.cpu.threads at most 2"}},
		"realtime": {`{domain: {cpu: {realtime: {}}}}`,
			[]string{"domain.cpu.dedicatedCpuPlacement realtime", "domain.cpu.numa.guestMappingPassthrough realtime"}},
		"realtime for what isn't a CPU": {`{domain: {cpu: {cores: 1, dedicatedCpuPlacement: true, numa: {guestMappingPassthrough: {}}, realtime: {mask: "all"}}, memory: {guest: 1Gi, hugepages: {pageSize: 1Gi}}}}`,
			[]string{"domain.cpu.realtime.mask such as 0-3,^1"}},
		"numa without pages": {`{domain: {cpu: {dedicatedCpuPlacement: true, cores: 1, numa: {guestMappingPassthrough: {}}}}}`,
			[]string{"domain.memory.hugepages Required"}},
	}.run(t)
}

func TestGrowingMemory(t *testing.T) {
	grow := func(memory, more string) string { return `{domain: {memory: {` + memory + `}` + more + `}}` }
	tables{
		"grows":       {grow("guest: 1Gi, maxGuest: 4Gi", ""), nil},
		"small":       {grow("guest: 512Mi, maxGuest: 4Gi", ""), []string{"domain.memory.guest at least 1Gi"}},
		"requested":   {`{domain: {memory: {guest: null, maxGuest: 4Gi}, resources: {requests: {memory: 512Mi}}}}`, []string{"domain.resources.requests.memory at least 1Gi"}},
		"no block":    {grow("guest: 1Gi, maxGuest: 2000000000", ""), []string{"domain.memory.maxGuest multiple of 2Mi"}},
		"large pages": {grow("guest: 1Gi, maxGuest: 1500Mi, hugepages: {pageSize: 1Gi}", ""), []string{"domain.memory.maxGuest multiple of 1Gi"}},
		"encrypted": {grow("guest: 1Gi, maxGuest: 2Gi", ", firmware: {bootloader: {efi: {secureBoot: false}}}, launchSecurity: {sev: {}}"),
			[]string{"domain.memory.maxGuest launchSecurity"}},
		"arm": {`{architecture: arm64, domain: {devices: {disks: [{name: root, disk: {bus: virtio}}]}, memory: {guest: 1Gi, maxGuest: 2Gi}}}`,
			[]string{"domain.memory.maxGuest other than amd64"}},
	}.run(t)
}

func TestFeaturesAndSecurity(t *testing.T) {
	efi := func(loader, security string) string {
		return `{domain: {firmware: {bootloader: {efi: {` + loader + `}}}, launchSecurity: {` + security + `}}}`
	}
	tables{
		"hyperv":          {`{domain: {features: {hyperv: {synictimer: {}}}}}`, nil},
		"hyperv in part":  {`{domain: {features: {hyperv: {synic: {}, vpindex: {enabled: false}}}}}`, []string{"domain.features.hyperv.vpindex.enabled synic needs it"}},
		"hyperv twice":    {`{domain: {features: {hypervPassthrough: {}, hyperv: {relaxed: {}}}}}`, []string{`domain.features.hyperv "relaxed"`}},
		"encrypted":       {efi("secureBoot: false", "sev: {}"), nil},
		"two ways":        {efi("secureBoot: false", "sev: {}, snp: {}"), []string{"domain.launchSecurity exactly one of sev, snp, tdx"}},
		"no way":          {efi("secureBoot: false", ""), []string{"domain.launchSecurity exactly one"}},
		"by BIOS":         {`{domain: {launchSecurity: {sev: {}}}}`, []string{"domain.firmware.bootloader.efi Required"}},
		"kept variables":  {efi("secureBoot: false, persistent: true", "snp: {}"), []string{"domain.firmware.bootloader.efi.persistent snp"}},
		"attested":        {efi("secureBoot: false", "sev: {attestation: {}}"), []string{"startStrategy Paused"}},
		"arm, BIOS":       {`{architecture: arm64, domain: {firmware: {bootloader: {bios: {}}}}}`, []string{`domain.firmware.bootloader "bios"`}},
		"arm, CPU model":  {`{architecture: arm64, domain: {cpu: {model: Haswell}}}`, []string{`domain.cpu.model "Haswell"`}},
		"arm, bus":        {`{architecture: arm64, domain: {devices: {disks: [{name: root, disk: {bus: sata}}]}}}`, []string{`domain.devices.disks[0].disk.bus "sata"`}},
		"ACPI table":      {`{domain: {firmware: {acpi: {slicNameRef: s}}}, volumes: [` + root + `, {name: s, secret: {secretName: x}}]}`, nil},
		"no such table":   {`{domain: {firmware: {acpi: {slicNameRef: s}}}}`, []string{`domain.firmware.acpi.slicNameRef "s"`}},
		"no table at all": {`{domain: {firmware: {acpi: {}}}}`, []string{"domain.firmware.acpi slicNameRef or msdmNameRef"}},
	}.run(t)
}

func TestHowAMachineIsRun(t *testing.T) {
	tables{
		"resolver": {`{dnsConfig: {nameservers: [192.0.2.53, "2001:db8::53"], searches: [lab.example, a.], options: [{name: ndots}]}}`, nil},
		"odd resolver": {`{dnsConfig: {nameservers: [ns1], searches: ["a_b"], options: [{}]}}`,
			[]string{`dnsConfig.nameservers[0] "ns1": must be an IP address`, "dnsConfig.searches[0] DNS domain", "dnsConfig.options[0].name Required"}},
		"many resolvers": {`{dnsConfig: {nameservers: [192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4]}}`, []string{"dnsConfig.nameservers at most 3"}},
		"probe by port":  {`{readinessProbe: {tcpSocket: {port: 22}}}`, nil},
		"probe, no Pod network": {`{readinessProbe: {tcpSocket: {port: 22}}, networks: [{name: net, multus: {networkName: lan}}], domain: {devices: {interfaces: [{name: net, bridge: {}}]}}}`,
			[]string{"readinessProbe needs a network with pod"}},
		"paused and probed": {`{startStrategy: Paused, livenessProbe: {guestAgentPing: {}}}`, []string{"startStrategy livenessProbe"}},
		"spread":            {`{topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]}`, nil},
		"odd spread": {`{topologySpreadConstraints: [{maxSkew: 0, topologyKey: "", whenUnsatisfiable: Never}]}`,
			[]string{"topologySpreadConstraints[0].maxSkew at least 1", "topologySpreadConstraints[0].topologyKey node label", `topologySpreadConstraints[0].whenUnsatisfiable "Never"`}},
		"affinity": {`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`, nil},
		"odd affinity": {`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}}`,
			[]string{"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values In"}},
		"apart": {`{affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, podAffinityTerm: {topologyKey: a, labelSelector: {matchLabels: {a: b}}}}]}}}`,
			[]string{"affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight 1 to 100"}},
		"keys, no seed":  {`{accessCredentials: [{sshPublicKey: {source: {secret: {secretName: k}}, propagationMethod: {noCloud: {}}}}]}`, []string{"accessCredentials[0].sshPublicKey.propagationMethod.noCloud cloudInitNoCloud"}},
		"keys, no users": {`{accessCredentials: [{sshPublicKey: {source: {secret: {secretName: k}}, propagationMethod: {qemuGuestAgent: {}}}}]}`, []string{"accessCredentials[0].sshPublicKey.propagationMethod.qemuGuestAgent.users Required"}},
	}.run(t)
}

func TestInterfaceDetails(t *testing.T) {
	const at = "domain.devices.interfaces[0]."
	one := func(more string) string { return `{domain: {devices: {interfaces: [{name: net, ` + more + `}]}}}` }
	tables{
		"options": {one(`masquerade: {}, dhcpOptions: {privateOptions: [{option: 240, value: x}], ntpServers: [192.0.2.1]}`), nil},
		"odd options": {one(`masquerade: {}, dhcpOptions: {privateOptions: [{option: 1, value: x}, {option: 1, value: z}], ntpServers: [pool.example]}`),
			[]string{at + "dhcpOptions.privateOptions[0].option 224 to 254", at + "dhcpOptions.privateOptions[1].option 224 to 254",
				at + "dhcpOptions.privateOptions[1].option privateOptions[0] is it too", at + "dhcpOptions.ntpServers[0] IPv4"}},
		"absent, first": {one(`bridge: {}, state: absent`), []string{at + "state bridge"}},
		"sriov, down":   {`{networks: [{name: net, multus: {networkName: a}}], domain: {devices: {interfaces: [{name: net, sriov: {}, state: down}]}}}`, []string{at + "state sriov"}},
		"downward metrics on sata": {`{volumes: [` + root + `, {name: m, downwardMetrics: {}}], domain: {devices: {disks: [{name: root}, {name: m, disk: {bus: sata}}]}}}`,
			[]string{"domain.devices.disks[1].disk.bus virtio"}},
		"blocks on sata": {`{domain: {devices: {disks: [{name: root, disk: {bus: sata}, blockSize: {custom: {logical: 4096, physical: 4096, discardGranularity: 4097}}}]}}}`,
			[]string{"domain.devices.disks[0].blockSize.custom.logical 512 on bus sata", "domain.devices.disks[0].blockSize.custom.discardGranularity multiple"}},
	}.run(t)
}
