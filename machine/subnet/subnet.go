// Package subnet has the networks on which guests are behind masquerade.
package subnet

import (
	"fmt"
	"net/netip"
)

// Networks where the VMI names none; the guest always sees the same addresses, also after it has moved to another Pod.
// Source: contract of KubeVirt.
const (
	Default4 = "10.0.2.0/24"
	Default6 = "fd10:0:2::/120"
)

// Subnet has the bridge's address, which is the guest's gateway, and the guest's.
type Subnet struct{ Gateway, Guest netip.Prefix }

// IPv4 returns the subnet of a network such as 10.0.2.0/24; empty: Default4. Its error says what would be right and
// doesn't repeat the network.
func IPv4(cidr string) (Subnet, error) { return of(cidr, Default4, "IPv4") }

// IPv6 returns that of a network such as fd10:0:2::/120; empty: Default6.
func IPv6(cidr string) (Subnet, error) { return of(cidr, Default6, "IPv6") }

func of(cidr, usual, family string) (Subnet, error) {
	if cidr == "" {
		cidr = usual
	}
	width := netip.MustParsePrefix(usual).Addr().BitLen()
	network, err := netip.ParsePrefix(cidr)
	if err != nil || network.Addr().BitLen() != width || network.Addr().Is4In6() || network.Bits() > width-2 {
		return Subnet{}, fmt.Errorf("must be an %s network with room for two addresses, such as %s", family, usual)
	}
	gateway := network.Masked().Addr().Next()
	return Subnet{netip.PrefixFrom(gateway, network.Bits()), netip.PrefixFrom(gateway.Next(), network.Bits())}, nil
}
