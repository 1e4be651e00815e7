package domain

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// memoryBacking is what the guest's memory is made of; who serves its file systems reads and writes it too.
func (c *converter) memoryBacking() *libvirtxml.DomainMemoryBacking {
	b := c.pages()
	if len(c.spec().Devices.Filesystems) == 0 {
		return b
	}
	if b == nil {
		b = &libvirtxml.DomainMemoryBacking{}
	}
	b.MemorySource = &libvirtxml.DomainMemorySource{Type: "memfd"}
	b.MemoryAccess = &libvirtxml.DomainMemoryAccess{Mode: "shared"}
	return b
}

// pages are huge ones, all there from the start where each NUMA cell has its own.
func (c *converter) pages() *libvirtxml.DomainMemoryBacking {
	size := c.pageSize()
	if size == 0 {
		return nil
	}
	page := libvirtxml.DomainMemoryHugepage{Size: uint(size >> 10), Unit: "KiB"}
	b := &libvirtxml.DomainMemoryBacking{MemoryHugePages: &libvirtxml.DomainMemoryHugepages{}}
	for i := range c.cells {
		page.Nodeset = numbers([]uint{uint(i)})
		b.MemoryHugePages.Hugepages = append(b.MemoryHugePages.Hugepages, page)
		b.MemoryAllocation = &libvirtxml.DomainMemoryAllocation{Mode: "immediate"}
	}
	if len(c.cells) == 0 {
		b.MemoryHugePages.Hugepages = append(b.MemoryHugePages.Hugepages, page)
	}
	if c.vmi.Annotations[v1.MemfdMemoryBackend] != "false" {
		b.MemorySource = &libvirtxml.DomainMemorySource{Type: "memfd"}
	}
	return b
}

// pageSize is that of huge pages in bytes; 0: the guest asks for none, or for what is no size, which is refused.
func (c *converter) pageSize() uint64 {
	m := c.spec().Memory
	if m == nil || m.Hugepages == nil {
		return 0
	}
	size, err := resource.ParseQuantity(strings.TrimSpace(m.Hugepages.PageSize))
	if err != nil || size.Value() < 1<<10 {
		return 0
	}
	return uint64(size.Value())
}

// checkPages refuses pages of no size.
func (c *converter) checkPages() {
	if m := c.spec().Memory; m != nil && m.Hugepages != nil && c.pageSize() == 0 {
		c.refuse(field.Invalid(c.path.Child("memory", "hugepages", "pageSize"), m.Hugepages.PageSize, "must be a page size such as 2Mi or 1Gi"))
	}
}
