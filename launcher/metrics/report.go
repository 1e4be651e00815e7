// Package metrics tells a guest of the load of its node and of its own machine, in the form of vhostmd, which agents of
// large applications read. It tells only what a container may know of its node.
package metrics

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"time"
)

// Host is what is told of the node.
type Host struct {
	Name string
	// CPUs is how many are online; CPUTime is what they have worked since the node's start.
	CPUs    int
	CPUTime time.Duration
	// Free and Used are bytes of memory, VirtualFree those of memory and swap.
	Free, Used, VirtualFree uint64
	// PagedIn and PagedOut are bytes moved from and to swap since the node's start.
	PagedIn, PagedOut uint64
}

// Guest is what is told of the guest's own machine.
type Guest struct {
	// CPUTime is what the machine has worked since its start; VCPUs is how many it has.
	CPUTime time.Duration
	VCPUs   uint
	// Memory is the guest's, in bytes.
	Memory uint64
}

// metric is one figure as vhostmd writes it.
type metric struct {
	XMLName xml.Name `xml:"metric"`
	Type    string   `xml:"type,attr"`
	Context string   `xml:"context,attr"`
	Unit    string   `xml:"unit,attr,omitempty"`
	Name    string   `xml:"name"`
	Value   string   `xml:"value"`
}

// Report writes the figures of a moment.
func Report(now time.Time, h Host, g Guest) ([]byte, error) {
	const host, vm = "host", "vm"
	b, err := xml.MarshalIndent(struct {
		XMLName xml.Name `xml:"metrics"`
		Metrics []metric
	}{Metrics: []metric{
		{Type: "string", Context: host, Name: "HostName", Value: h.Name},
		{Type: "string", Context: host, Name: "HostSystemInfo", Value: "linux"},
		{Type: "string", Context: host, Name: "VirtualizationVendor", Value: "kubevirt.io"},
		count(host, "NumberOfPhysicalCPUs", uint64(h.CPUs)),
		seconds(host, "TotalCPUTime", h.CPUTime),
		kib(host, "FreePhysicalMemory", h.Free),
		kib(host, "FreeVirtualMemory", h.VirtualFree),
		kib(host, "UsedVirtualMemory", h.Used),
		kib(host, "PagedInMemory", h.PagedIn),
		kib(host, "PagedOutMemory", h.PagedOut),
		{Type: "int64", Context: host, Unit: "s", Name: "Time", Value: strconv.FormatInt(now.Unix(), 10)},
		seconds(vm, "TotalCPUTime", g.CPUTime),
		count(vm, "ResourceProcessorLimit", uint64(g.VCPUs)),
		kib(vm, "PhysicalMemoryAllocatedToVirtualSystem", g.Memory),
		kib(vm, "ResourceMemoryLimit", g.Memory),
	}}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the node's metrics: %w", err)
	}
	return b, nil
}

func count(context, name string, n uint64) metric {
	return metric{Type: "uint64", Context: context, Name: name, Value: strconv.FormatUint(n, 10)}
}

func kib(context, name string, bytes uint64) metric {
	return metric{Type: "uint64", Context: context, Unit: "KiB", Name: name, Value: strconv.FormatUint(bytes>>10, 10)}
}

func seconds(context, name string, d time.Duration) metric {
	return metric{Type: "real64", Context: context, Unit: "s", Name: name, Value: strconv.FormatFloat(d.Seconds(), 'f', 6, 64)}
}
