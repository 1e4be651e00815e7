package subnet_test

import (
	"testing"

	"virtstack.io/virtstack/machine/subnet"
)

func TestSubnets(t *testing.T) {
	for name, tc := range map[string]struct {
		of             func(string) (subnet.Subnet, error)
		cidr           string
		gateway, guest string // empty: refused
	}{
		"none":                 {subnet.IPv4, "", "10.0.2.1/24", "10.0.2.2/24"},
		"none, IPv6":           {subnet.IPv6, "", "fd10:0:2::1/120", "fd10:0:2::2/120"},
		"an address within":    {subnet.IPv4, "192.168.66.77/28", "192.168.66.65/28", "192.168.66.66/28"},
		"the smallest":         {subnet.IPv4, "10.9.9.4/30", "10.9.9.5/30", "10.9.9.6/30"},
		"too small":            {subnet.IPv4, "10.9.9.4/31", "", ""},
		"too small, IPv6":      {subnet.IPv6, "fd00::/127", "", ""},
		"the other family":     {subnet.IPv4, "fd00::/64", "", ""},
		"the other, IPv6":      {subnet.IPv6, "10.9.9.0/24", "", ""},
		"an address":           {subnet.IPv4, "10.9.9.4", "", ""},
		"one in another":       {subnet.IPv6, "::ffff:10.0.0.0/120", "", ""},
		"nonsense":             {subnet.IPv4, "home", "", ""},
		"no prefix at all, v6": {subnet.IPv6, "fd00::/129", "", ""},
	} {
		got, err := tc.of(tc.cidr)
		if err != nil {
			if tc.gateway != "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got.Gateway.String() != tc.gateway || got.Guest.String() != tc.guest {
			t.Errorf("%s: got %v, want %s and %s", name, got, tc.gateway, tc.guest)
		}
	}
}
