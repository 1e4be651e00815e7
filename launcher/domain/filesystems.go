package domain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"libvirt.org/go/libvirtxml"
)

// maxTag is how long, in bytes, the name can be by which a guest mounts a file system; source: virtio's specification.
const maxTag = 36

// filesystemQueue is how many requests of the guest to one of its file systems may wait.
const filesystemQueue = 1024

// filesystems are directories of the Pod that the guest mounts, each by its name in the spec. The launcher serves them.
func (c *converter) filesystems() []libvirtxml.DomainFilesystem {
	var l []libvirtxml.DomainFilesystem
	for i, f := range c.spec().Devices.Filesystems {
		path := c.path.Child("devices", "filesystems").Index(i)
		socket, found := c.facts.Filesystems[f.Name]
		switch {
		case f.Virtiofs == nil:
			c.refuse(field.Required(path.Child("virtiofs"), "the one kind of file system"))
		case len(f.Name) > maxTag:
			c.refuse(field.TooLong(path.Child("name"), f.Name, maxTag))
		case !found:
			c.refuse(field.Invalid(path.Child("name"), f.Name, "must be the name of a volume in spec.volumes that is there"))
		}
		l = append(l, libvirtxml.DomainFilesystem{
			AccessMode: "passthrough",
			Driver:     &libvirtxml.DomainFilesystemDriver{Type: "virtiofs", Queue: filesystemQueue},
			Source:     &libvirtxml.DomainFilesystemSource{Mount: &libvirtxml.DomainFilesystemSourceMount{Socket: socket}},
			Target:     &libvirtxml.DomainFilesystemTarget{Dir: f.Name},
			Alias:      c.alias(f.Name, path.Child("name")),
		})
	}
	return l
}
