package libvirt

import (
	"errors"
	"fmt"
	"slices"

	libvirtgo "libvirt.org/go/libvirt"

	"virtstack.io/virtstack/launcher/driver"
)

// refusals are what libvirt calls a guest that it can't make of its XML: the guest is malformed, contradicts itself, or
// asks for what this libvirt, this QEMU or this machine doesn't have. What else libvirt says, of which an internal error
// may be anything, a later try may mend.
var refusals = []libvirtgo.ErrorNumber{
	libvirtgo.ERR_XML_ERROR, libvirtgo.ERR_XML_DETAIL, libvirtgo.ERR_XML_INVALID_SCHEMA, libvirtgo.ERR_PARSE_FAILED,
	libvirtgo.ERR_CONFIG_UNSUPPORTED, libvirtgo.ERR_OPERATION_UNSUPPORTED, libvirtgo.ERR_ARGUMENT_UNSUPPORTED, libvirtgo.ERR_NO_SUPPORT,
	libvirtgo.ERR_INVALID_ARG, libvirtgo.ERR_INVALID_MAC, libvirtgo.ERR_OVERFLOW, libvirtgo.ERR_CPU_INCOMPATIBLE,
	libvirtgo.ERR_OS_TYPE, libvirtgo.ERR_NO_OS, libvirtgo.ERR_NO_NAME, libvirtgo.ERR_NO_KERNEL, libvirtgo.ERR_NO_ROOT,
	libvirtgo.ERR_NO_SOURCE, libvirtgo.ERR_NO_TARGET, libvirtgo.ERR_NO_DEVICE,
}

// failed wraps an error of libvirt, and tells when its cause is the daemon's death, or the guest itself.
func (d *Driver) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	if alive, err := d.conn.IsAlive(); err == nil && !alive {
		return fmt.Errorf("%s: %w", doing, driver.ErrGone)
	}
	if of(err, refusals...) {
		return fmt.Errorf("%s: %w", doing, driver.Refusal{Err: plain(err)})
	}
	return fmt.Errorf("%s: %w", doing, plain(err))
}

func of(err error, codes ...libvirtgo.ErrorNumber) bool {
	var e libvirtgo.Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// plain drops the numbers around libvirt's message.
func plain(err error) error {
	var e libvirtgo.Error
	if errors.As(err, &e) {
		return errors.New(e.Message)
	}
	return err
}
