package serve

import (
	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/driver"
)

func agentOf(said *driver.AgentInfo) *guestv1.Agent {
	if said == nil {
		return nil
	}
	a := &guestv1.Agent{
		Hostname: said.Hostname, Timezone: said.Timezone,
		OsId: said.OS.ID, OsName: said.OS.Name, OsPrettyName: said.OS.PrettyName, OsMachine: said.OS.Machine,
		OsVersion: said.OS.Version, OsVersionId: said.OS.VersionID,
		KernelRelease: said.OS.KernelRelease, KernelVersion: said.OS.KernelVersion,
	}
	for _, i := range said.Interfaces {
		a.Interfaces = append(a.Interfaces, &guestv1.AgentInterface{Name: i.Name, Mac: i.MAC, Addresses: i.Addresses})
	}
	return a
}
