package defaults

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// machineSpace is the UUIDv5 namespace of the machines we name.
var machineSpace = uuid.MustParse("5b1f9f0e-6f55-5a5c-9d0a-7f2b1c0e4d31")

// FirmwareUUID returns the SMBIOS UUID of the machine of that name: the same for the same commit, another one in every
// other namespace.
func FirmwareUUID(namespace, name string) string {
	return uuid.NewSHA1(machineSpace, []byte(namespace+"/"+name)).String()
}

// Serial returns the SMBIOS serial number likewise.
func Serial(namespace, name string) string {
	return uuid.NewSHA1(machineSpace, []byte(namespace+"/"+name+"/serial")).String()
}

// MAC returns a locally administered unicast address for an interface, derived from its names.
func MAC(namespace, name, iface string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name + "/" + iface))
	mac := sum[:6]
	mac[0] = mac[0]&^0x01 | 0x02
	return strings.ReplaceAll(fmt.Sprintf("% x", mac), " ", ":")
}
