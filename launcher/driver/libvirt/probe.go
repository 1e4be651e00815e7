package libvirt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	libvirtgo "libvirt.org/go/libvirt"
)

const emulatorPath = "/usr/bin/qemu-system-x86_64"

// Found is what a node's QEMU can do.
type Found struct {
	// Documents are libvirt's own XML, by file name.
	Documents map[string][]byte
	// Cache is what SeedCache takes on the same node with the same image.
	Cache map[string][]byte
}

// Probe starts a libvirtd, asks it what QEMU can do here, and ends it.
func Probe(ctx context.Context, o Options) (Found, error) {
	f := Found{Documents: map[string][]byte{}, Cache: map[string][]byte{}}
	d, err := Open(ctx, o)
	if err != nil {
		return f, err
	}
	defer d.Close()
	host, err := d.conn.GetCapabilities()
	if err != nil {
		return f, d.failed("asking for the host's capabilities", err)
	}
	f.Documents["capabilities.xml"] = []byte(host)
	for _, way := range []string{"qemu", "kvm"} {
		doc, err := d.conn.GetDomainCapabilities(emulatorPath, "x86_64", "q35", way, 0)
		if way == "kvm" && of(err, libvirtgo.ERR_INVALID_ARG) {
			continue // there is no /dev/kvm, or none that this user may open or that QEMU can use
		}
		if err != nil {
			return f, d.failed("asking for the capabilities of "+way+" guests", err)
		}
		f.Documents["domcapabilities-"+way+".xml"] = []byte(doc)
	}
	return f, f.readCache(CacheDir(o.Dir))
}

func (f Found) readCache(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the capability cache: %w", err)
	}
	for _, e := range entries {
		if !cacheName.MatchString(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("reading the capability cache: %w", err)
		}
		f.Cache[e.Name()] = content
	}
	return nil
}
