// Package share serves directories of the Pod to the guest, each by a virtiofsd of its own. It is the launcher's user
// there as everywhere: what the guest does in a directory is done by that user, without a capability.
package share

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"virtstack.io/virtstack/launcher/child"
	"virtstack.io/virtstack/launcher/disk"
)

const virtiofsd = "/usr/libexec/virtiofsd"

// Server serves the directories of one guest.
type Server struct {
	// Dir is where the sockets are made.
	Dir string
	// Log takes what the processes say.
	Log io.Writer

	program string // that serves; empty: the image's virtiofsd
	mu      sync.Mutex
	serving map[string]bool // by volume
}

// Serve serves each directory until ctx ends or the guest has left it, unless an earlier call has begun to and it is
// still served; it returns the sockets by volume.
func (s *Server) Serve(ctx context.Context, shares map[string]disk.Share) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil {
		s.serving = map[string]bool{}
	}
	volumes := make([]string, 0, len(shares))
	for volume := range shares {
		volumes = append(volumes, volume)
	}
	slices.Sort(volumes)
	sockets := map[string]string{}
	for i, volume := range volumes {
		// A socket's name is short whatever the volume's is: the kernel takes no long ones.
		sockets[volume] = filepath.Join(s.Dir, "fs"+strconv.Itoa(i)+".sock")
		if s.serving[volume] {
			continue
		}
		if err := s.start(ctx, volume, shares[volume], sockets[volume]); err != nil {
			return nil, fmt.Errorf("serving volume %s: %w", volume, err)
		}
	}
	return sockets, nil
}

// start starts a virtiofsd on a socket that is listened on already, so that QEMU need not wait for it.
func (s *Server) start(ctx context.Context, volume string, share disk.Share, socket string) error {
	listening, err := listen(socket)
	if err != nil {
		return err
	}
	defer listening.Close()
	cmd := exec.CommandContext(ctx, cmp.Or(s.program, virtiofsd), args(share)...)
	cmd.ExtraFiles = []*os.File{listening}
	cmd.Stdout, cmd.Stderr = s.Log, s.Log
	// Outside a container nothing else would end it with us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	wait, err := child.Start(cmd)
	if err != nil {
		return err
	}
	s.serving[volume] = true
	go func() {
		if err := wait(); err != nil && ctx.Err() == nil {
			fmt.Fprintf(s.Log, "serving volume %s has ended: %v\n", volume, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.serving[volume] = false
	}()
	return nil
}

// args: a sandbox of its own would need to make a user namespace, which a container may not; its seccomp filter it has.
// Whoever writes in the guest writes as the launcher's user.
func args(share disk.Share) []string {
	a := []string{
		"--fd=3", "--shared-dir=" + share.Dir, "--sandbox=none", "--cache=auto",
		"--rlimit-nofile=0", "--no-announce-submounts", "--log-level=warn",
	}
	if share.ReadOnly {
		a = append(a, "--readonly")
	}
	return a
}

// listen returns a listening socket that outlives this process's own hold on it.
func listen(socket string) (*os.File, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	return l.File()
}
