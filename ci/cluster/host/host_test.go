package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHierarchies(t *testing.T) {
	for name, tc := range map[string]struct {
		cgroup string
		want   []Hierarchy
	}{
		"version 1": {"9:name=systemd:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n", []Hierarchy{{"name=systemd", "/"}, {"memory", "/a/b"}, {"cpu,cpuacct", "/"}}},
		"version 2": {"0::/user.slice/a\n", []Hierarchy{{"", "/user.slice/a"}}},
		"colons":    {"3:pids:/a:b\n", []Hierarchy{{"pids", "/a:b"}}},
		"nothing":   {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Hierarchies(tc.cgroup); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if got := (Hierarchy{Controllers: "name=systemd"}).Dir(); got != "systemd" {
		t.Errorf("directory %q, want systemd", got)
	}
}

func TestSysctlsComeBack(t *testing.T) {
	dir := t.TempDir()
	s := Sysctls{Root: filepath.Join(dir, "sys"), File: filepath.Join(dir, "run", "sysctl.json")}
	values := map[string]string{"vm.overcommit_memory": "0", "fs.inotify.max_user_instances": "128", "net.ipv4.ip_forward": "0"}
	for key, v := range values {
		if err := os.MkdirAll(filepath.Dir(s.path(key)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path(key), []byte(v+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second finds ours set, and must not take them for the old ones
		if err := s.Set(); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(s.path("net.ipv4.ip_forward")); string(got) != "1" {
		t.Errorf("ip_forward is %q, want 1", got)
	}
	if err := s.Restore(); err != nil {
		t.Fatal(err)
	}
	for key, want := range values {
		if got, _ := os.ReadFile(s.path(key)); string(got) != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if _, err := os.Stat(s.File); err == nil {
		t.Error("the record is still there")
	}
}

func TestMountsOfADirectory(t *testing.T) {
	info := `22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:27 / /src/.cluster/node1/x rw - tmpfs t rw
31 22 254:0 /src/.cluster/node1/var/lib /var/lib rw - ext4 /dev/vda rw
32 22 254:0 / /src/.clusters rw - ext4 /dev/vda rw
`
	got, want := mountsOf(info, "/src/.cluster"), []string{"/src/.cluster/node1/x", "/var/lib"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
