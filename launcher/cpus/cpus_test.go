package cpus

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"virtstack.io/virtstack/launcher/domain"
)

// in are files by name.
func in(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestThePodsCPUs(t *testing.T) {
	proc := in(map[string]string{"self/status": "Name:\tvirt-launcher\nCpus_allowed:\t206\nCpus_allowed_list:\t1-2,9\nMems_allowed_list:\t0\n"})
	for name, tc := range map[string]struct {
		sys  map[string]string
		want []domain.HostCPU
	}{
		"cores and cells": {map[string]string{
			"devices/system/cpu/cpu1/topology/thread_siblings_list": "1,9\n",
			"devices/system/cpu/cpu2/topology/thread_siblings_list": "2,10\n",
			"devices/system/cpu/cpu9/topology/thread_siblings_list": "1,9\n",
			"devices/system/node/node0/cpulist":                     "0-1,8-9\n",
			"devices/system/node/node1/cpulist":                     "2-3,10-11\n",
		}, []domain.HostCPU{{ID: 1, Core: 1}, {ID: 2, Core: 2, Cell: 1}, {ID: 9, Core: 1}}},
		"a node that tells nothing": {nil, []domain.HostCPU{{ID: 1, Core: 1}, {ID: 2, Core: 2}, {ID: 9, Core: 9}}},
	} {
		got, err := Read(proc, in(tc.sys))
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
	for _, status := range []string{"", "Cpus_allowed_list:\t\n", "Cpus_allowed_list:\tall\n", "Cpus_allowed_list:\t0-99999999\n"} {
		if got, err := Read(in(map[string]string{"self/status": status}), in(nil)); err == nil {
			t.Errorf("%q: got %v, want an error", status, got)
		}
	}
}

func FuzzLists(f *testing.F) {
	f.Add("0-3,8\n")
	f.Add("3-1")
	f.Add("0-8191,0-8191")
	f.Add("-1,,4294967296")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := Parse(text); err == nil && len(got) > 8192 {
			t.Errorf("%q: %d CPUs", text, len(got))
		}
	})
}

// TestOthersStayAway runs in a process of its own, all of whose threads it moves.
func TestOthersStayAway(t *testing.T) {
	const inner = "VIRTSTACK_CONFINE"
	if os.Getenv(inner) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOthersStayAway$", "-test.v")
		cmd.Env = append(os.Environ(), inner+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	const mine = "/proc/self/task/[0-9]*"
	proc, sys := os.DirFS("/proc"), os.DirFS("/sys")
	have, err := Read(proc, sys)
	if err != nil {
		t.Fatal(err)
	}
	last := have[len(have)-1].ID
	if err := keep(mine, []uint{last}); err != nil {
		t.Fatal(err)
	}
	if now, err := Read(proc, sys); err != nil || len(now) != 1 || now[0].ID != last {
		t.Errorf("may run on %v, want CPU %d (%v)", now, last, err)
	}
	if err := keep(mine, nil); err == nil {
		t.Error("kept to no CPUs")
	}
}
