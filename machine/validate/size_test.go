package validate_test

import (
	"fmt"
	"testing"

	"virtstack.io/virtstack/machine/validate"
)

func TestMemoryInEveryUnit(t *testing.T) {
	amounts := map[string]string{ // a part of the message, empty where the amount is right
		"64Mi": "", "1.5Gi": "", "1000M": "", "1e9": "", "134217728": "", "128974848e0": "", "1M": "",
		"2048": "is 2048 bytes and must be at least 1000000: give a unit",
		"512m": "m stands for thousandths",
		"-1Gi": "must not be negative",
		"0":    "must be more than 0",
		"0Gi":  "must be more than 0",
		"1Pi":  "", "1025Ti": "must be at most 1Pi", "9Ei": "must be at most 1Pi", "99999999999999999999Ei": "must be at most 1Pi",
	}
	for amount, part := range amounts {
		t.Run(amount, func(t *testing.T) {
			var guest, request []string
			if part != "" {
				guest = []string{"domain.memory.guest " + part}
				request = []string{"domain.resources.requests.memory " + part}
			}
			expect(t, validate.VM(parse(t, fmt.Sprintf(`{domain: {memory: {guest: %q}}}`, amount))), guest)
			over := fmt.Sprintf(`{domain: {memory: null, resources: {requests: {memory: %q}}}}`, amount)
			expect(t, validate.VM(parse(t, over)), request)
		})
	}
}

func TestMemory(t *testing.T) {
	tables{
		"none":              {`{domain: {memory: null}}`, []string{"domain.memory.guest Required"}},
		"empty":             {`{domain: {memory: {guest: null}}}`, []string{"domain.memory.guest Required"}},
		"from instancetype": {`spec: {instancetype: {name: i}, template: {spec: {domain: {memory: null}}}}`, nil},
		"request and limit": {`{domain: {memory: null, resources: {requests: {memory: 256Mi}, limits: {memory: 1Gi}}}}`, nil},
		"above limit":       {`{domain: {memory: {guest: 2Gi}, resources: {limits: {memory: 1Gi}}}}`, []string{`domain.memory.guest "2Gi": must be at most the Pod's limit, 1Gi`}},
		"request > limit":   {`{domain: {resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}}`, []string{`domain.resources.requests.memory "2Gi": must be at most the limit, 1Gi`}},
		"negative limit":    {`{domain: {memory: null, resources: {limits: {memory: -1}}}}`, []string{"domain.resources.limits.memory must not be negative"}},
		"a device":          {`{domain: {resources: {requests: {vendor.example/device: 2}, limits: {vendor.example/device: 2}}}}`, nil},
		"part of a device":  {`{domain: {resources: {requests: {vendor.example/device: 1.5}}}}`, []string{`domain.resources.requests[vendor.example/device] "1500m": must be whole`}},
		"more than asked":   {`{domain: {resources: {requests: {vendor.example/device: 1}, limits: {vendor.example/device: 2}}}}`, []string{`domain.resources.limits[vendor.example/device] "2": must be the request, 1`}},
		"no resource":       {`{domain: {resources: {limits: {"bad resource!": 1}}}}`, []string{`domain.resources.limits "bad resource!": must be the name of a resource`}},
		"cpu request":       {`{domain: {resources: {requests: {cpu: "-1"}}}}`, []string{"domain.resources.requests.cpu must not be negative"}},
		"cpu > limit":       {`{domain: {resources: {requests: {cpu: "2"}, limits: {cpu: 500m}}}}`, []string{`domain.resources.requests.cpu "2": must be at most the limit, 500m`}},
		"maximum":           {`{domain: {memory: {maxGuest: 64Mi}}}`, []string{`domain.memory.maxGuest "64Mi": must be at least the guest's memory, 128Mi`}},
		"reserved":          {`{domain: {memory: {reservedOverhead: {addedOverhead: 64Mi}}}}`, nil},
		"reserved negative": {`{domain: {memory: {reservedOverhead: {addedOverhead: "-1"}}}}`, []string{"domain.memory.reservedOverhead.addedOverhead must not be negative"}},
		"pages":             {`{domain: {memory: {hugepages: {pageSize: 2Mi}}}}`, nil},
		"pages alone":       {`{domain: {memory: {guest: null, hugepages: {pageSize: 2Mi}}}}`, nil},
		"odd pages":         {`{domain: {memory: {hugepages: {pageSize: 1Gi}}}}`, []string{`domain.memory.hugepages.pageSize "1Gi": must divide the guest's memory, 128Mi`}},
		"no pages":          {`{domain: {memory: {hugepages: {pageSize: "0"}}}}`, []string{"domain.memory.hugepages.pageSize 2Mi or 1Gi"}},
		"endless pages":     {`{domain: {memory: {hugepages: {pageSize: "1e99"}}}}`, []string{"domain.memory.hugepages.pageSize 2Mi or 1Gi"}},
		"every cpu":         {`{domain: {resources: {requests: {cpu: 4Ki}}}}`, nil},
		"a million cpus":    {`{domain: {resources: {requests: {cpu: 1M}}}}`, []string{`domain.resources.requests.cpu "1M": must be at most 4096`}},
		"odd model":         {`{domain: {cpu: {model: "../host"}}}`, []string{"domain.cpu.model must be a model that nodes have"}},
		"odd feature":       {`{domain: {cpu: {features: [{name: "a,b"}]}}}`, []string{"domain.cpu.features[0].name must be a feature that nodes have"}},
	}.run(t)
}

func TestCPU(t *testing.T) {
	tables{
		"topology":      {`{domain: {cpu: {sockets: 2, cores: 4, threads: 2}}}`, nil},
		"too many":      {`{domain: {cpu: {sockets: 65, cores: 64}}}`, []string{"domain.cpu at most 4096 virtual CPUs"}},
		"overflow":      {`{domain: {cpu: {sockets: 4294967295, cores: 4294967295, threads: 4294967295}}}`, []string{"domain.cpu at most 4096"}},
		"above maximum": {`{domain: {cpu: {sockets: 4, maxSockets: 2}}}`, []string{"domain.cpu.sockets 4: must be at most maxSockets, 2"}},
		"policy":        {`{domain: {cpu: {features: [{name: vmx, policy: perhaps}]}}}`, []string{`domain.cpu.features[0].policy "perhaps"`}},
		"isolated":      {`{domain: {cpu: {isolateEmulatorThread: true}}}`, []string{"domain.cpu.isolateEmulatorThread needs dedicatedCpuPlacement: true"}},
	}.run(t)
}
