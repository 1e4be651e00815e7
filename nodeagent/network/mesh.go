package network

import (
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
)

// In a Pod with Istio's proxy its own rules catch what comes from outside, and the proxy opens a connection of its own
// to the Pod's address. Source of addresses and ports: Istio's documentation, and the contract of KubeVirt.

// proxySource is the address that the proxy's connections come from.
var proxySource = netip.MustParseAddr("127.0.0.6")

// proxyPorts are the proxy's own, where no port of the guest's is listed.
var proxyPorts = []uint16{15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090}

// ssh passes by the proxy, as it does by Istio's own rules.
var ssh = Forward{Port: 22}

// fromOutside returns one match for each rule that passes on to the guest what reaches the Pod.
func (m *Masquerade) fromOutside() [][]expr.Any {
	switch {
	case !m.Mesh:
		return forwarded(m.Forward)
	case len(m.Forward) == 0 || slices.Contains(m.Forward, ssh):
		return forwarded([]Forward{ssh})
	}
	return nil
}

// proxyOwn returns one match for each port that stays the proxy's.
func (m *Masquerade) proxyOwn() [][]expr.Any {
	if len(m.Forward) > 0 {
		return nil // no other than those reaches the guest
	}
	var own []Forward
	for _, port := range proxyPorts {
		own = append(own, Forward{Port: port})
	}
	return forwarded(own)
}
