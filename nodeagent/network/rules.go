package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/machine/subnet"
)

// table holds all of our rules of a family in a Pod's namespace; the tenant's own programs, if any, have theirs.
const table = "virtstack"

// translated is a port behind masquerade and the families it is translated in.
type translated struct {
	Port
	used families
}

// translate makes the tables anew in one transaction: what reaches the Pod goes to the guest, and what the guest sends
// leaves with the Pod's address. Connections that exist are the kernel's and are not touched.
func translate(ns int, ports []translated) error {
	c, err := nftables.New(nftables.WithNetNSFd(ns))
	if err != nil {
		return fmt.Errorf("opening nftables: %w", err)
	}
	for _, f := range []family{ip4, ip6} {
		used := slices.DeleteFunc(slices.Clone(ports), func(p translated) bool { return !f.used(p.used) })
		if len(used) == 0 {
			continue // a node may do without a family
		}
		r := f.rules(c)
		for _, p := range used {
			r.port(p)
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables: %w", err)
	}
	return nil
}

// family is what the rules of IPv4 and IPv6 differ in.
type family struct {
	table  nftables.TableFamily
	nat    uint32
	subnet func(*Masquerade) subnet.Subnet
	used   func(families) bool
	// source and destination are the offsets of the addresses in the header, in bytes.
	source, destination uint32
	// loopback is the namespace's own address where it can be translated: the kernel does that for IPv4 only.
	loopback netip.Addr
}

var (
	ip4 = family{
		table: nftables.TableFamilyIPv4, nat: unix.NFPROTO_IPV4, source: 12, destination: 16,
		subnet: func(m *Masquerade) subnet.Subnet { return m.V4 }, used: func(f families) bool { return f.v4 },
		loopback: netip.MustParseAddr("127.0.0.1"),
	}
	ip6 = family{
		table: nftables.TableFamilyIPv6, nat: unix.NFPROTO_IPV6, source: 8, destination: 24,
		subnet: func(m *Masquerade) subnet.Subnet { return m.V6 }, used: func(f families) bool { return f.v6 },
	}
)

// rules are one family's chains while they are written.
type rules struct {
	family
	conn                     *nftables.Conn
	t                        *nftables.Table
	guard, pre, output, post *nftables.Chain
}

func (f family) rules(c *nftables.Conn) *rules {
	t := c.AddTable(&nftables.Table{Family: f.table, Name: table})
	c.FlushTable(t)
	chain := func(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
		return c.AddChain(&nftables.Chain{Name: name, Table: t, Type: kind, Hooknum: hook, Priority: priority})
	}
	return &rules{
		family: f, conn: c, t: t,
		guard:  chain("guard", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw),
		pre:    chain("prerouting", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest),
		output: chain("output", nftables.ChainTypeNAT, nftables.ChainHookOutput, nftables.ChainPriorityNATDest),
		post:   chain("postrouting", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource),
	}
}

func (r *rules) add(chain *nftables.Chain, parts ...[]expr.Any) {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	r.conn.AddRule(&nftables.Rule{Table: r.t, Chain: chain, Exprs: all})
}

func (r *rules) port(p translated) {
	net := r.subnet(p.Masquerade)
	guest, gateway := net.Guest.Addr(), net.Gateway.Addr()
	for _, match := range p.Masquerade.fromOutside() {
		r.add(r.pre, device16(expr.MetaKeyIIFNAME, p.Uplink), match, r.translateTo(guest, expr.NATTypeDestNAT))
	}
	if r.loopback.IsValid() {
		r.fromInside(p, guest, gateway)
		// The bridge routes loopback addresses for answers to those; the guest itself has no business there.
		r.add(r.guard, device16(expr.MetaKeyIIFNAME, p.Bridge), anyLoopback(r.destination), []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}})
	}
	r.add(r.post, address(r.source, guest), device16(expr.MetaKeyOIFNAME, p.Uplink), []expr.Any{&expr.Masq{}})
}

// fromInside passes on to the guest what the Pod sends to itself: a port forward of kubectl's, or Istio's proxy.
func (r *rules) fromInside(p translated, guest, gateway netip.Addr) {
	to, from := []netip.Addr{r.loopback}, []netip.Addr{r.loopback}
	if p.Masquerade.Mesh {
		to, from = append(to, p.used.own), append(from, proxySource)
		for _, match := range p.Masquerade.proxyOwn() {
			r.add(r.output, match, []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}})
		}
	}
	for _, match := range forwarded(p.Masquerade.Forward) {
		for _, own := range to {
			r.add(r.output, address(r.destination, own), match, r.translateTo(guest, expr.NATTypeDestNAT))
		}
	}
	for _, own := range from {
		r.add(r.post, address(r.source, own), device16(expr.MetaKeyOIFNAME, p.Bridge), r.translateTo(gateway, expr.NATTypeSourceNAT))
	}
}

// forwarded returns one match for each rule that passes traffic on to the guest.
func forwarded(list []Forward) [][]expr.Any {
	if len(list) == 0 {
		return [][]expr.Any{nil}
	}
	var matches [][]expr.Any
	for _, f := range list {
		protocol := byte(unix.IPPROTO_TCP)
		if f.UDP {
			protocol = unix.IPPROTO_UDP
		}
		matches = append(matches, []expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, // destination port
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(f.Port)},
		})
	}
	return matches
}

func (r *rules) translateTo(to netip.Addr, kind expr.NATType) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: to.AsSlice()},
		&expr.NAT{Type: kind, Family: r.nat, RegAddrMin: 1},
	}
}

func address(offset uint32, want netip.Addr) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(want.BitLen() / 8)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: want.AsSlice()},
	}
}

// anyLoopback matches 127.0.0.0/8 by its first byte.
func anyLoopback(offset uint32) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{127}},
	}
}

// device16 matches a device by name, which the kernel compares as 16 bytes.
func device16(key expr.MetaKey, name string) []expr.Any {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: b}}
}
