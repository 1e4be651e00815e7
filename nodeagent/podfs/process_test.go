package podfs

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestThePodOfACgroup(t *testing.T) {
	const u = "0f8b6a52-9a4c-4d5e-8f00-1c2d3e4f5a6b"
	for name, tc := range map[string]struct{ cgroups, want string }{
		"version 1, cgroupfs":          {"12:memory:/kubepods/burstable/pod" + u + "/3fa9\n1:name=systemd:/kubepods/burstable/pod" + u + "/3fa9\n5:misc:/\n", u},
		"version 2, systemd":           {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(u, "-", "_") + ".slice/cri-containerd-3fa9.scope\n", u},
		"version 2, guaranteed":        {"0::/kubepods.slice/kubepods-pod" + strings.ReplaceAll(u, "-", "_") + ".slice/cri-containerd-3fa9.scope\n", u},
		"seen from a cgroup namespace": {"0::/../../pod" + u + "/3fa9\n", u},
		"a cgroup the container made":  {"0::/kubepods/pod" + u + "/3fa9/podother\n", u},
		"no newline at the end":        {"0::/kubepods/pod" + u + "/3fa9", u},
		"two Pods":                     {"2:cpu:/kubepods/podone/x\n1:memory:/kubepods/podtwo/x\n", ""},
		"a process of the node":        {"0::/system.slice/containerd.service\n", ""},
		"the Pods' own cgroup":         {"0::/kubepods/pod/x\n", ""},
		"empty":                        {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podOf([]byte(tc.cgroups)); got != types.UID(tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzThePodOfACgroup(f *testing.F) {
	f.Add([]byte("0::/kubepods/poda/b\n"))
	f.Add([]byte(":::\n-pod.slice\n/-pod_.slice"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if uid := podOf(b); strings.ContainsAny(string(uid), "/\n") {
			t.Errorf("got %q", uid)
		}
	})
}

func TestAPeerOutsideThePodIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, uid := range map[string]uint32{"right user, no Pod": uint32(os.Getuid()), "another user": 12345} {
		if _, err := Peer(conn, "0f8b6a52", uid); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: got %v, want %v", name, err, ErrForeign)
		}
	}
}

func TestTheNetworkNamespaceOfAProcess(t *testing.T) {
	self, err := os.Open("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{self}
	defer p.Close()
	ns, err := p.NetworkNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	got, err1 := ns.Stat()
	want, err2 := os.Stat("/proc/self/ns/net")
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(got, want) {
		t.Errorf("another namespace was opened: %v", err)
	}
}

func TestThreadsOfAProcess(t *testing.T) {
	self, err := os.Open("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{self}
	defer p.Close()
	got, err := p.threads(uint32(os.Getuid()))
	if err != nil || !slices.ContainsFunc(got, func(th Thread) bool { return th.ID == os.Getpid() && th.Name != "" }) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := p.threads(12345); len(got) != 0 || err != nil {
		t.Errorf("as another user: %v, %v", got, err)
	}
	if got, err := Threads("0f8b6a52", uint32(os.Getuid())); len(got) != 0 || err != nil {
		t.Errorf("of a Pod that isn't here: %v, %v", got, err)
	}
}
