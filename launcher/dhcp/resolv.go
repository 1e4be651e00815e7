package dhcp

import (
	"bytes"
	"net/netip"
	"strings"
)

// Resolver reads name servers and search domains as resolv.conf(5) writes them; lines that say neither, and servers
// that are no address, are skipped. The last search line counts.
func Resolver(conf []byte) (servers []netip.Addr, search []string) {
	for line := range bytes.Lines(conf) {
		f := strings.Fields(string(line))
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "nameserver":
			if a, err := netip.ParseAddr(f[1]); err == nil {
				servers = append(servers, a)
			}
		case "search":
			search = f[1:]
		}
	}
	return servers, search
}
