package domain

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// cell is one of the guest's NUMA cells.
type cell struct {
	host  uint // the node's cell that its memory is of
	vcpus []uint
	bytes uint64
}

// mapsNUMA tells whether the guest has the node's NUMA cells as its own.
func (c *converter) mapsNUMA() bool {
	cpu := c.spec().CPU
	return cpu != nil && cpu.NUMA != nil && cpu.NUMA.GuestMappingPassthrough != nil
}

// mappedCells returns a cell of the guest for each of the node's that its vCPUs are on, with an equal share of its
// memory in whole pages; nil: the guest doesn't have the node's. vCPUs that may be added are in the first.
func (c *converter) mappedCells() []cell {
	if !c.mapsNUMA() || c.pins == nil {
		return nil
	}
	var cells []cell
	for id, cpu := range c.pins.vcpus {
		at := slices.IndexFunc(cells, func(x cell) bool { return x.host == cpu.Cell })
		if at < 0 {
			at, cells = len(cells), append(cells, cell{host: cpu.Cell})
		}
		cells[at].vcpus = append(cells[at].vcpus, uint(id))
	}
	sockets, cores, threads := c.topology()
	for id := uint(len(c.pins.vcpus)); id < uint(c.maxSockets(sockets))*uint(cores)*uint(threads) && id < maxVCPUs; id++ {
		cells[0].vcpus = append(cells[0].vcpus, id)
	}
	guest, path := c.guestMemory()
	page := c.pageSize()
	if page == 0 || guest == nil {
		return nil // refused where it is missing
	}
	pages, n := uint64(guest.Value())/page, uint64(len(cells))
	if uint64(guest.Value())%page != 0 || pages < n {
		c.refuse(field.Invalid(path, guest.String(), "must be whole pages of memory.hugepages.pageSize, one for each NUMA cell at least"))
		return nil
	}
	for i := range cells {
		share := pages / n
		if uint64(i) < pages%n {
			share++
		}
		cells[i].bytes = share * page
	}
	return cells
}

// numa returns the guest's NUMA cells; nil: it has none to speak of. Memory that has a file behind it is in one.
func (c *converter) numa(backing *libvirtxml.DomainMemoryBacking, vcpus uint) *libvirtxml.DomainNuma {
	cells := c.cells
	if guest, _ := c.guestMemory(); len(cells) == 0 && guest != nil && backing != nil && backing.MemorySource != nil {
		one := cell{bytes: uint64(guest.Value())}
		for id := range vcpus {
			one.vcpus = append(one.vcpus, id)
		}
		cells = []cell{one}
	}
	if len(cells) == 0 {
		return nil
	}
	n := &libvirtxml.DomainNuma{}
	for i, x := range cells {
		n.Cell = append(n.Cell, libvirtxml.DomainCell{ID: ptr(uint(i)), CPUs: ranges(x.vcpus), Memory: uint((x.bytes + 1023) >> 10), Unit: "KiB"})
	}
	return n
}

// numaTune takes each cell's memory from the node's cell that it stands for, and from no other.
func (c *converter) numaTune() *libvirtxml.DomainNUMATune {
	if len(c.cells) == 0 {
		return nil
	}
	var hosts []uint
	t := &libvirtxml.DomainNUMATune{}
	for i, x := range c.cells {
		hosts = append(hosts, x.host)
		t.MemNodes = append(t.MemNodes, libvirtxml.DomainNUMATuneMemNode{CellID: uint(i), Mode: "strict", Nodeset: numbers([]uint{x.host})})
	}
	t.Memory = &libvirtxml.DomainNUMATuneMemory{Mode: "strict", Nodeset: numbers(hosts)}
	return t
}

// isRealtime tells whether the guest's vCPUs run before all else on their CPUs.
func isRealtime(d *v1.DomainSpec) bool { return d.CPU != nil && d.CPU.Realtime != nil }

// ranges spells numbers in order, those that follow each other as first-last.
func ranges(ids []uint) string {
	slices.Sort(ids)
	var list []string
	for i := 0; i < len(ids); {
		last := i
		for last+1 < len(ids) && ids[last+1] == ids[last]+1 {
			last++
		}
		text := strconv.FormatUint(uint64(ids[i]), 10)
		if last > i {
			text += "-" + strconv.FormatUint(uint64(ids[last]), 10)
		}
		list, i = append(list, text), last+1
	}
	return strings.Join(list, ",")
}
