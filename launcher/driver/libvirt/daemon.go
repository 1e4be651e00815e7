package libvirt

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"virtstack.io/virtstack/launcher/child"
)

const daemonPath = "/usr/sbin/libvirtd"

// connectPoll is how often a starting daemon's socket is tried.
const connectPoll = 5 * time.Millisecond

// daemon is a libvirtd that runs as a child, for this one user, below one directory.
type daemon struct {
	dir  string
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended
	end  error         // how it ended; read after gone
}

// daemonConf keeps the daemon small (few threads) and off the network. Each launcher says it is another host, or a
// migration between two launchers of one node would be refused.
const daemonConf = `listen_tls = 0
listen_tcp = 0
auth_unix_rw = "none"
min_workers = 2
max_workers = 8
prio_workers = 1
admin_min_workers = 1
admin_max_workers = 1
keepalive_interval = -1
log_outputs = "3:stderr"
host_uuid = "%s"
`

// qemuConf: no virtlogd, no cgroups or namespaces (the Pod has them), QEMU's own seccomp filter on.
const qemuConf = `stdio_handler = "file"
security_driver = "none"
seccomp_sandbox = 1
max_core = 0
namespaces = []
cgroup_controllers = []
remember_owner = 0
`

// startDaemon starts libvirtd. Its log goes to the options'.
func startDaemon(o Options) (*daemon, error) {
	dir := o.Dir
	if err := configure(o); err != nil {
		return nil, fmt.Errorf("configuring libvirtd: %w", err)
	}
	d := &daemon{dir: dir, gone: make(chan struct{})}
	d.cmd = exec.Command(daemonPath, "--pid-file", filepath.Join(dir, "libvirtd.pid"))
	// One malloc arena: with one for each thread the daemon holds several MiB more.
	d.cmd.Env = append(Environment(dir), "MALLOC_ARENA_MAX=1", "PATH=/usr/sbin:/usr/bin")
	d.cmd.Stdout, d.cmd.Stderr = o.Log, o.Log
	// Outside a container nothing else would end it with us.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	wait, err := child.Start(d.cmd)
	if err != nil {
		return nil, fmt.Errorf("starting libvirtd: %w", err)
	}
	go func() {
		d.end = wait()
		close(d.gone)
	}()
	return d, nil
}

// Environment keeps everything that libvirt writes below dir.
func Environment(dir string) []string {
	return []string{
		"HOME=" + dir,
		"XDG_RUNTIME_DIR=" + dir,
		"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
		"XDG_CACHE_HOME=" + filepath.Join(dir, "cache"),
		"XDG_DATA_HOME=" + filepath.Join(dir, "data"),
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"),
	}
}

func configure(o Options) error {
	dir := o.Dir
	conf := filepath.Join(dir, "config", "libvirt")
	for _, d := range []string{conf, filepath.Join(dir, "libvirt"), filepath.Join(dir, "cache"), filepath.Join(dir, "data"), filepath.Join(dir, "state")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	var id [16]byte
	rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	uuid := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	if err := os.WriteFile(filepath.Join(conf, "libvirtd.conf"), fmt.Appendf(nil, daemonConf, uuid), 0o600); err != nil {
		return err
	}
	qemu := []byte(qemuConf)
	if o.HugePages != "" {
		qemu = fmt.Appendf(qemu, "hugetlbfs_mount = %q\n", o.HugePages)
	}
	return os.WriteFile(filepath.Join(conf, "qemu.conf"), qemu, 0o600)
}

// connect waits until the daemon serves.
func (d *daemon) connect(ctx context.Context) (*libvirtgo.Connect, error) {
	socket := filepath.Join(d.dir, "libvirt", "libvirt-sock")
	tick := time.NewTicker(connectPoll)
	defer tick.Stop()
	for {
		if _, err := os.Stat(socket); err == nil {
			if c, err := libvirtgo.NewConnect("qemu+unix:///session?socket=" + socket); err == nil {
				return c, nil
			}
		}
		select {
		case <-tick.C:
		case <-d.gone:
			return nil, fmt.Errorf("libvirtd ended before it served: %w", d.end)
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for libvirtd: %w", ctx.Err())
		}
	}
}

// stop ends the daemon and waits for its end.
func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	<-d.gone
}
