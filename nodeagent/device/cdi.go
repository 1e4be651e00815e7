package device

import (
	"encoding/json"
	"fmt"
	"os"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// Devices are named to the container runtime through the Container Device Interface: its specification gives a device
// an owner, which the device plugin's own answer can't. A device's mode on the host, often 0660 root:kvm, would else
// lock the launcher's user out.
const (
	cdiKind = "virtstack.io/device"
	cdiFile = "virtstack.io-device.json"
	// cdiVersion is the oldest of the format that has what is used here, so that old runtimes read it.
	cdiVersion = "0.5.0"
)

type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}

type cdiDevice struct {
	Name  string   `json:"name"`
	Edits cdiEdits `json:"containerEdits"`
}

type cdiEdits struct {
	Nodes []cdiNode `json:"deviceNodes"`
}

type cdiNode struct {
	Path        string `json:"path"`
	HostPath    string `json:"hostPath"`
	FileMode    uint32 `json:"fileMode"`
	Permissions string `json:"permissions"`
	UID         uint32 `json:"uid"`
	GID         uint32 `json:"gid"`
}

func cdiName(d Device) string { return cdiKind + "=" + d.Name }

// writeCDI tells the container runtime of the devices. The runtime watches the directory, so the file appears whole.
func writeCDI(dir *os.Root, devices []Device) error {
	spec := cdiSpec{Version: cdiVersion, Kind: cdiKind, Devices: []cdiDevice{}}
	for _, d := range devices {
		node := cdiNode{Path: d.Path, HostPath: d.Path, FileMode: 0o600, Permissions: "rw", UID: guestv1.User, GID: guestv1.User}
		spec.Devices = append(spec.Devices, cdiDevice{d.Name, cdiEdits{[]cdiNode{node}}})
	}
	b, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	const unread = cdiFile + ".tmp" // the runtime reads only .json and .yaml
	if err := dir.WriteFile(unread, b, 0o644); err != nil {
		return fmt.Errorf("writing the CDI specification: %w", err)
	}
	if err := dir.Rename(unread, cdiFile); err != nil {
		return fmt.Errorf("writing the CDI specification: %w", err)
	}
	return nil
}
