//go:build e2e

package e2e

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/ci/lab"
)

// primary asks a TPM for the key that it derives from its seed: TPM2_CreatePrimary of a storage key on P-256 in the owner's
// hierarchy. It is the same for as long as the TPM's state is. Source: TCG's TPM 2.0 Library, parts 2 and 3.
const primary = "800200000043000001314000000100000009400000090000000000000400000000" +
	"001a0023000b00030472000000060080004300100003001000000000000000000000"

// state lists the claims of a machine's state.
func (p place) state(name string) []k8sv1.PersistentVolumeClaim {
	p.t.Helper()
	var list k8sv1.PersistentVolumeClaimList
	p.must(theLab.Client.List(p.t.Context(), &list, client.InNamespace(p.ns), client.MatchingLabels{"persistent-state-for": name}))
	return list.Items
}

// What a TPM holds and a variable of the firmware are there after a restart, and go with the VM.
func TestStateOutlivesThePod(t *testing.T) {
	p := newPlace(t, "kept")
	p.create(p.vm("web", p.withFirmware("{bootloader: {efi: {secureBoot: false, persistent: true}}}"), guestMemory("256Mi"), p.withDevices("{tpm: {persistent: true}}")))
	first := p.phase("web", v1.Running, 2*time.Minute)
	p.asked(p.keeper("web"), `printf '\007\000\000\000%s' $(key) >$var; tail -c 32 $var | wc -c | sed s/^/bytes:/`, "bytes:32")
	claims := p.state("web")
	if len(claims) != 1 || claims[0].OwnerReferences[0].Kind != "VirtualMachine" || claims[0].Status.Phase != k8sv1.ClaimBound {
		t.Fatalf("claims of the state: %+v", claims)
	}
	_, err := theLab.Run(t.Context(), "virtctl", "restart", "-n", p.ns, "web")
	p.must(err)
	p.another("web", first.UID, v1.Running, 3*time.Minute)
	p.asked(p.keeper("web"), `[ "$(tail -c 32 $var)" = "$(key)" ] && echo sa''me`, "same")
	p.must(theLab.Client.Delete(t.Context(), p.vm("web")))
	p.gone(&v1.VirtualMachine{}, "web", time.Minute)
	p.gone(&k8sv1.PersistentVolumeClaim{}, claims[0].Name, time.Minute)
}

// keeper returns a shell that knows a key of the guest's TPM and a variable of its firmware.
func (p place) keeper(name string) *lab.Console {
	p.t.Helper()
	command, err := hex.DecodeString(primary)
	p.must(err)
	bytes := ""
	for _, b := range command {
		bytes += fmt.Sprintf("\\%03o", b)
	}
	c := p.shell(name)
	p.must(c.Send("key() { exec 3<>/dev/tpm0; printf '" + bytes + "' >&3; dd bs=4096 count=1 <&3 2>/dev/null | tail -c +15 | md5sum | cut -c1-32; exec 3>&-; }\n"))
	p.must(c.Send("mount -t efivarfs vars /sys/firmware/efi/efivars; var=/sys/firmware/efi/efivars/Kept-5d307ca9-b3ef-428c-8861-06e72d69f223\n"))
	return c
}
