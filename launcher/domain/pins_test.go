package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"virtstack.io/virtstack/launcher/domain"
)

// cpus reads CPUs as "cell/core/number" in words.
func cpus(t *testing.T, text string) []domain.HostCPU {
	t.Helper()
	var list []domain.HostCPU
	for word := range strings.FieldsSeq(text) {
		var c domain.HostCPU
		if _, err := fmt.Sscanf(word, "%d/%d/%d", &c.Cell, &c.Core, &c.ID); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// pinned converts a guest with CPUs for itself and spells what runs where.
func pinned(t *testing.T, spec, host string) string {
	t.Helper()
	in := parse(t, "{vmi: {spec: {domain: {devices: {}, memory: {guest: 64Mi, hugepages: {pageSize: 2Mi}}, "+spec+"}}}}")
	in.Facts.CPUs = cpus(t, host)
	d, err := domain.Convert(in.VMI, in.Facts)
	if err != nil {
		return err.Error()
	}
	var said []string
	for _, p := range d.CPUTune.VCPUPin {
		said = append(said, fmt.Sprintf("%d=%s", p.VCPU, p.CPUSet))
	}
	if p := d.CPUTune.EmulatorPin; p != nil {
		said = append(said, "emulator="+p.CPUSet)
	}
	for _, p := range d.CPUTune.IOThreadPin {
		said = append(said, fmt.Sprintf("io%d=%s", p.IOThread, p.CPUSet))
	}
	return strings.Join(said, " ")
}

func TestWhereThreadsRun(t *testing.T) {
	const own = "dedicatedCpuPlacement: true"
	for name, tc := range map[string]struct{ spec, host, want string }{
		"one thread a core, in the node's order": {
			"cpu: {cores: 3, " + own + "}", "1/9/9 0/2/6 0/2/2", "0=2 1=6 2=9",
		},
		"whole cores before fragments, of whatever cell": {
			"cpu: {cores: 2, threads: 2, " + own + "}", "0/1/1 1/4/4 1/4/8 0/3/3", "0=4 1=8 2=1 3=3",
		},
		"across cells where nothing else is left": {
			"cpu: {threads: 2, " + own + "}", "0/1/1 1/4/4", "0=1 1=4",
		},
		"but not where the guest has the node's cells": {
			"cpu: {threads: 2, " + own + ", numa: {guestMappingPassthrough: {}}}", "0/1/1 1/4/4",
			"spec.domain.cpu.threads: Invalid value: 2: must be 1 where the Pod's CPUs don't make up cores of that many within a NUMA cell",
		},
		"QEMU's other threads apart": {
			"cpu: {cores: 2, " + own + ", isolateEmulatorThread: true}, ioThreadsPolicy: shared", "0/1/1 0/2/2 0/3/3", "0=1 1=2 emulator=3 io1=3",
		},
		"IO threads share the vCPUs' CPUs evenly": {
			"cpu: {cores: 3, " + own + "}, ioThreadsPolicy: shared", "0/1/1 0/2/2 0/3/3", "0=1 1=2 2=3 io1=1,2,3",
		},
		"a pool has its own": {
			"cpu: {cores: 1, " + own + "}, ioThreadsPolicy: supplementalPool, ioThreads: {supplementalPoolThreadCount: 2}", "0/1/1 0/2/2 0/3/3", "0=1 io1=2 io2=3",
		},
		"a Pod that shares its node's": {
			"cpu: {cores: 2, " + own + "}", "0/1/1 0/2/2 0/3/3",
			"spec.domain.cpu.dedicatedCpuPlacement: Invalid value: true: the Pod must have 2 CPUs of its node for itself and may run on 3: the node's kubelet needs cpuManagerPolicy static",
		},
	} {
		if got := pinned(t, tc.spec, tc.host); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tc.want)
		}
	}
}

// Each of several IO threads is beside as many vCPUs as any other, or one vCPU after the other has them.
func TestIOThreadsBesideVCPUs(t *testing.T) {
	disks := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("{name: d%d, dedicatedIOThread: true, disk: {bus: virtio}}", i))
		}
		return "{vmi: {spec: {domain: {memory: {guest: 64Mi}, cpu: {cores: 3, dedicatedCpuPlacement: true}, devices: {disks: [" + strings.Join(list, ",") + "]}}}}}"
	}
	for n, want := range map[int]string{1: "1,2 3", 3: "1 2 3 1"} {
		in := parse(t, disks(n))
		in.Facts.CPUs, in.Facts.Sources = cpus(t, "0/1/1 0/2/2 0/3/3"), map[string]domain.Source{}
		for _, d := range in.VMI.Spec.Domain.Devices.Disks {
			in.Facts.Sources[d.Name] = domain.Source{Path: "/d", Format: domain.Raw}
		}
		d, err := domain.Convert(in.VMI, in.Facts)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range d.CPUTune.IOThreadPin {
			got = append(got, p.CPUSet)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d disks with a thread each: on %v, want %s", n, got, want)
		}
	}
}

func TestMemoryThatDoesNotFillNUMACells(t *testing.T) {
	for guest, cells := range map[string]string{"65M": "0/1/1 0/2/2", "2Mi": "0/1/1 1/2/2"} {
		in := parse(t, "{vmi: {spec: {domain: {devices: {}, memory: {guest: "+guest+", hugepages: {pageSize: 2Mi}}, cpu: {cores: 2, dedicatedCpuPlacement: true, numa: {guestMappingPassthrough: {}}}}}}}")
		in.Facts.CPUs = cpus(t, cells)
		_, err := domain.Convert(in.VMI, in.Facts)
		if err == nil || !strings.Contains(err.Error(), "spec.domain.memory.guest: ") || !strings.Contains(err.Error(), "one for each NUMA cell") {
			t.Errorf("%s on %s: got %v", guest, cells, err)
		}
	}
}
