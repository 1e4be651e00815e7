package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"virtstack.io/virtstack/ci/cluster/await"
	"virtstack.io/virtstack/ci/cluster/config"
	"virtstack.io/virtstack/ci/cluster/layout"
)

const containerdSocket = "/run/containerd/containerd.sock"

// service is a program that is started again whenever it ends.
type service struct {
	name string
	args []string
}

func (s spec) services() (containerd, kubelet, proxy service) {
	file := func(name string) string { return filepath.Join(config.NodeConfig, name) }
	return service{"containerd", []string{"--config", file("containerd.toml")}},
		service{"kubelet", []string{
			"--config", file("kubelet.yaml"), "--kubeconfig", file("kubelet.kubeconfig"),
			"--hostname-override", s.Name, "--node-ip", s.IP,
		}},
		service{"kube-proxy", []string{"--config", file("kube-proxy.yaml")}}
}

// supervisor is what process 1 does: it keeps the services running and reaps whatever is left to it.
type supervisor struct {
	node    string
	mu      sync.Mutex
	running map[int]service
}

// restartAfter is the pause before an ended service is started again.
const restartAfter = time.Second

func (s spec) supervise() error {
	v := &supervisor{node: s.Name, running: map[int]service{}}
	containerd, kubelet, proxy := s.services()
	if err := v.start(containerd); err != nil {
		return err
	}
	if err := answers(containerdSocket); err != nil {
		return err
	}
	if err := loaded(); err != nil {
		return err
	}
	if err := errors.Join(v.start(kubelet), v.start(proxy)); err != nil {
		return err
	}
	return v.reap()
}

// loaded waits for the node's images: a Pod that came earlier would fail to pull and then wait out its back-off.
func loaded() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return await.True(ctx, "images", 50*time.Millisecond, func(context.Context) (bool, error) {
		_, err := os.Stat(filepath.Join(config.NodeConfig, layout.LoadedName))
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	})
}

// answers waits until something accepts connections: a kubelet ends at once where containerd doesn't.
func answers(socket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return await.True(ctx, socket, 50*time.Millisecond, func(context.Context) (bool, error) {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false, nil
		}
		return true, c.Close()
	})
}

// start holds the lock until the service is known: it may end, and be reaped, at once.
func (v *supervisor) start(s service) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	log, err := os.OpenFile(filepath.Join(config.NodeLogs, v.node+"-"+s.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	pid, err := syscall.ForkExec(filepath.Join(config.NodeBin, s.name), append([]string{s.name}, s.args...), &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(os.Environ(), "PATH="+config.NodeBin+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.name, err)
	}
	v.running[pid] = s
	fmt.Printf("%s %s started, pid %d\n", time.Now().Format(time.TimeOnly), s.name, pid)
	return nil
}

func (v *supervisor) reap() error {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch err {
		case nil:
			v.ended(pid, ws)
		case syscall.EINTR:
		case syscall.ECHILD: // every service ended: one is started soon
			<-time.After(restartAfter / 10)
		default:
			return fmt.Errorf("reaping: %w", err)
		}
	}
}

// ended has a service started again; any other process was an orphan.
func (v *supervisor) ended(pid int, ws syscall.WaitStatus) {
	v.mu.Lock()
	s, ok := v.running[pid]
	delete(v.running, pid)
	v.mu.Unlock()
	if !ok {
		return
	}
	fmt.Printf("%s %s ended (exit %d, signal %d)\n", time.Now().Format(time.TimeOnly), s.name, ws.ExitStatus(), ws.Signal())
	time.AfterFunc(restartAfter, func() {
		if err := v.start(s); err != nil {
			fmt.Println(err)
		}
	})
}
