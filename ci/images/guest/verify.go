package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kdomanski/iso9660"

	"virtstack.io/virtstack/ci/images/closure"
	"virtstack.io/virtstack/ci/images/rootfs"
)

// bootDeadline is far above what a boot on an emulated CPU takes on a busy machine, about 30 seconds.
const bootDeadline = 3 * time.Minute

// memoryMiB is what the guest must boot in.
const memoryMiB = "128"

// emulatorFiles is QEMU with what it needs to boot the disk.
var emulatorFiles = []string{
	"usr/bin/qemu-system-x86_64", "usr/share/seabios/bios-256k.bin", "usr/share/seabios/vgabios-stdvga.bin",
	"usr/share/qemu/kvmvapic.bin", "usr/share/qemu/linuxboot_dma.bin",
}

const userData = "#cloud-config\nhostname: verified\npassword: secret\nruncmd:\n- echo it is ready >/dev/ttyS0\n"

// Verify boots the disk that was built with a seed, waits for its login, presses the power button and waits for the
// end of the machine. The console goes to log. It needs root, as Disk does.
func (b Builder) Verify(ctx context.Context, log io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, bootDeadline)
	defer cancel()
	root, err := filepath.Abs(filepath.Join(b.Work, "machine"))
	if err != nil {
		return err
	}
	if err := b.machine(root); err != nil {
		return fmt.Errorf("preparing a machine for the guest: %w", err)
	}
	defer os.RemoveAll(root)
	qemu := exec.CommandContext(ctx, "/usr/bin/qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,tb-size=32", "-cpu", "qemu64",
		"-m", memoryMiB, "-nodefaults", "-display", "none", "-serial", "stdio", "-monitor", "unix:/monitor,server=on,wait=off",
		"-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
		"-drive", "if=virtio,file=/disk.qcow2,format=qcow2,snapshot=on", "-drive", "if=virtio,file=/seed.iso,format=raw,readonly=on")
	qemu.Dir, qemu.Env = "/", []string{"TMPDIR=/"}
	qemu.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL}
	qemu.Stderr = log
	console, err := qemu.StdoutPipe()
	if err != nil {
		return err
	}
	if err := qemu.Start(); err != nil {
		return fmt.Errorf("starting QEMU: %w", err)
	}
	if err := expect(io.TeeReader(console, log), filepath.Join(root, "monitor")); err != nil {
		return errors.Join(err, qemu.Process.Kill(), qemu.Wait())
	}
	return qemu.Wait()
}

// machine fills a root directory for QEMU.
func (b Builder) machine(root string) error {
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	tree := rootfs.New()
	for _, dir := range []string{"bin", "lib", "lib64"} {
		tree.Dir("usr/"+dir, 0o755, rootfs.Root)
		tree.Symlink(dir, "usr/"+dir)
	}
	if err := closure.Copy(tree, b.Packages.Dir, emulatorFiles...); err != nil {
		return err
	}
	iso, err := seedISO()
	if err != nil {
		return err
	}
	tree.File("dev/null", nil, 0o666) // a plain file will do
	tree.File("seed.iso", iso, 0o644)
	tree.Copy("disk.qcow2", b.diskFile(), 0o644)
	return tree.Extract(root)
}

func seedISO() ([]byte, error) {
	w, err := iso9660.NewWriter()
	if err != nil {
		return nil, err
	}
	defer w.Cleanup() //nolint:errcheck // a directory in /tmp
	for name, content := range map[string]string{"user-data": userData, "meta-data": "local-hostname: ignored\n"} {
		if err := w.AddFile(bytes.NewReader([]byte(content)), name); err != nil {
			return nil, err
		}
	}
	var iso bytes.Buffer
	err = w.WriteTo(&iso, "cidata")
	return iso.Bytes(), err
}

// expect reads the console until the guest has shown all that it should, then presses the power button and reads on to
// the end.
func expect(console io.Reader, monitor string) error {
	var seen bytes.Buffer
	for _, text := range []string{"GUEST: seed applied host verified", "it is ready", "GUEST: ready host verified", "verified login: "} {
		if err := readUntil(console, &seen, text); err != nil {
			return fmt.Errorf("waiting for %q on the guest's console: %w", text, err)
		}
	}
	conn, err := net.Dial("unix", monitor)
	if err != nil {
		return fmt.Errorf("reaching QEMU's monitor: %w", err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "system_powerdown\n"); err != nil {
		return fmt.Errorf("pressing the power button: %w", err)
	}
	if err := readUntil(console, &seen, "GUEST: going down"); err != nil {
		return fmt.Errorf("waiting for the guest to notice its power button: %w", err)
	}
	_, err = io.Copy(io.Discard, console)
	return err
}

func readUntil(r io.Reader, seen *bytes.Buffer, text string) error {
	chunk := make([]byte, 4096)
	for !bytes.Contains(seen.Bytes(), []byte(text)) {
		n, err := r.Read(chunk)
		seen.Write(chunk[:n])
		if err != nil {
			return err
		}
	}
	return nil
}
