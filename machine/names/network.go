package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	v1 "kubevirt.io/api/core/v1"
)

// PodUplink is the interface by which a Pod reaches its network.
const PodUplink = "eth0"

// PodInterface returns the interface in the launcher Pod behind one of a VMI's networks: eth0 for the Pod's own or
// the default one, else "pod" and 11 digits hashed from the network's name. Source: contract of KubeVirt.
func PodInterface(network v1.Network) string {
	if network.Multus == nil || network.Multus.Default {
		return PodUplink
	}
	sum := sha256.Sum256([]byte(network.Name))
	return "pod" + hex.EncodeToString(sum[:])[:11]
}

// Wiring are the devices that connect a guest to an interface of its Pod, each a name of at most 15 bytes.
type Wiring struct {
	// Bridge joins the guest's cable, Tap, to the Pod's network.
	Bridge, Tap string
	// Original is what the Pod's interface is called once the guest has its address, and Stand what its stand-in is
	// called until it has the interface's name.
	Original, Stand string
}

// WiringOf returns the devices for an interface of the Pod, as PodInterface names it.
func WiringOf(podInterface string) Wiring {
	short := strings.TrimPrefix(podInterface, "pod")
	tap := "tap" + short
	if podInterface == PodUplink {
		tap = "tap0"
	}
	return Wiring{Bridge: "k6t-" + short, Tap: tap, Original: short + "-nic", Stand: short + "-ip"}
}
