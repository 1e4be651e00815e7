package network

import (
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// table holds all of our rules in a Pod's namespace; the tenant's own programs, if any, have theirs.
const table = "virtstack"

// translate makes the table anew in one transaction: what reaches the Pod goes to the guest, and what the guest sends
// leaves with the Pod's address. Connections that exist are the kernel's and are not touched.
func translate(ns int, ports []Port) error {
	c, err := nftables.New(nftables.WithNetNSFd(ns))
	if err != nil {
		return fmt.Errorf("opening nftables: %w", err)
	}
	t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: table})
	c.FlushTable(t)
	pre := c.AddChain(&nftables.Chain{
		Name: "prerouting", Table: t, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest,
	})
	post := c.AddChain(&nftables.Chain{
		Name: "postrouting", Table: t, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	for _, p := range ports {
		for _, match := range inbound(p) {
			c.AddRule(&nftables.Rule{Table: t, Chain: pre, Exprs: append(match, toGuest(p.Guest.Addr())...)})
		}
		c.AddRule(&nftables.Rule{Table: t, Chain: post, Exprs: outbound(p)})
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables: %w", err)
	}
	return nil
}

// inbound returns one match for each rule that passes traffic on to the guest.
func inbound(p Port) [][]expr.Any {
	arrives := device16(expr.MetaKeyIIFNAME, Uplink)
	if len(p.Forward) == 0 {
		return [][]expr.Any{arrives}
	}
	var rules [][]expr.Any
	for _, f := range p.Forward {
		protocol := byte(unix.IPPROTO_TCP)
		if f.UDP {
			protocol = unix.IPPROTO_UDP
		}
		rules = append(rules, append(arrives[:len(arrives):len(arrives)],
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, // destination port
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(f.Port)},
		))
	}
	return rules
}

func toGuest(guest netip.Addr) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: guest.AsSlice()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1},
	}
}

func outbound(p Port) []expr.Any {
	match := []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4}, // source address
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Guest.Addr().AsSlice()},
	}
	return append(append(match, device16(expr.MetaKeyOIFNAME, Uplink)...), &expr.Masq{})
}

// device16 matches a device by name, which the kernel compares as 16 bytes.
func device16(key expr.MetaKey, name string) []expr.Any {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: b}}
}
