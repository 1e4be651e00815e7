//go:build libvirt

package libvirt

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	libvirtgo "libvirt.org/go/libvirt"

	"virtstack.io/virtstack/launcher/child"
)

var goldens = flag.String("goldens", "../../domain/testdata", "directory with the golden domains of launcher/domain")

// What the converter's golden files hold is of libvirt's schema, and libvirt stores it. A domain for KVM or for another
// architecture is only held against the schema: this machine may have neither.
func TestGoldenDomains(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*goldens, "*.golden.xml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("found %q: %v", files, err)
	}
	if err := child.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "lv")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	d, err := Open(t.Context(), Options{Dir: dir, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		xml := string(raw)
		if strings.HasPrefix(xml, "refused:") {
			continue
		}
		foreign := strings.Contains(xml, `<domain type="kvm"`) || !strings.Contains(xml, `arch="x86_64"`)
		if err := stored(d, xml); err != nil && (!foreign || isSchema(err)) {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
	if err := stored(d, "<domain type='qemu'><name>x</name><memry>1</memry></domain>"); !isSchema(err) {
		t.Errorf("a domain of another schema: got %v", err)
	}
}

// stored stores a domain that is of the schema, and forgets it.
func stored(d *Driver, xml string) error {
	dom, err := d.conn.DomainDefineXMLFlags(xml, libvirtgo.DOMAIN_DEFINE_VALIDATE)
	if err != nil {
		return err
	}
	defer free(dom)
	return dom.UndefineFlags(libvirtgo.DOMAIN_UNDEFINE_KEEP_NVRAM | libvirtgo.DOMAIN_UNDEFINE_KEEP_TPM)
}

func isSchema(err error) bool {
	var e libvirtgo.Error
	return errors.As(err, &e) && e.Code == libvirtgo.ERR_XML_INVALID_SCHEMA
}
