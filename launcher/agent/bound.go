package agent

import (
	"net"
	"net/netip"
	"strings"
	"unicode"

	"virtstack.io/virtstack/launcher/driver"
)

// Limits of what an agent says. With all of them used, it takes less than 64 KiB of the VMI's status.
const (
	// MaxInterfaces and MaxAddresses are above what a VM can have of ours; a guest may well make more.
	MaxInterfaces = 64
	MaxAddresses  = 16
	// MaxText is in bytes.
	MaxText = 128
	// looks is how many times as many as may be told are looked at, so that nonsense costs no time either.
	looks = 4
)

// Bound returns what may be told of an agent's answer: texts cut to MaxText and without anything that isn't printed,
// interfaces only with a real MAC and real addresses, and no more of them than the limits. What is dropped is lost
// without a word: it is a guest's invention, or one of hundreds.
func Bound(info driver.AgentInfo) driver.AgentInfo {
	said := driver.AgentInfo{
		Hostname: text(info.Hostname), Timezone: text(info.Timezone),
		OS: driver.AgentOS{
			ID: text(info.OS.ID), Name: text(info.OS.Name), PrettyName: text(info.OS.PrettyName),
			Version: text(info.OS.Version), VersionID: text(info.OS.VersionID),
			KernelRelease: text(info.OS.KernelRelease), KernelVersion: text(info.OS.KernelVersion), Machine: text(info.OS.Machine),
		},
	}
	for _, i := range info.Interfaces[:min(len(info.Interfaces), looks*MaxInterfaces)] {
		mac, err := net.ParseMAC(i.MAC)
		if err != nil || len(mac) != 6 || len(said.Interfaces) == MaxInterfaces {
			continue
		}
		said.Interfaces = append(said.Interfaces, driver.AgentInterface{Name: text(i.Name), MAC: mac.String(), Addresses: addresses(i.Addresses)})
	}
	return said
}

func addresses(list []string) []string {
	var found []string
	for _, s := range list[:min(len(list), looks*MaxAddresses)] {
		a, err := netip.ParseAddr(s[:min(len(s), MaxText)])
		if err != nil || a.Zone() != "" || len(found) == MaxAddresses {
			continue
		}
		found = append(found, a.String())
	}
	return found
}

// text looks at no more bytes than it may keep.
func text(s string) string {
	s = s[:min(len(s), MaxText)]
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s))
}

// Printable returns what a program in the guest wrote as one line, without what isn't printed.
func Printable(output string) string {
	return strings.Join(strings.FieldsFunc(output[:min(len(output), driver.MaxOutput)], func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r)
	}), " ")
}
