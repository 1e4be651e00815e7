package libvirt

import (
	"context"
	"fmt"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"virtstack.io/virtstack/launcher/driver"
)

const system = libvirtgo.DOMAIN_GUEST_INFO_OS | libvirtgo.DOMAIN_GUEST_INFO_HOSTNAME | libvirtgo.DOMAIN_GUEST_INFO_TIMEZONE | libvirtgo.DOMAIN_GUEST_INFO_INTERFACES

func (d *Driver) agentChanged(_ *libvirtgo.Connect, _ *libvirtgo.Domain, e *libvirtgo.DomainEventAgentLifecycle) {
	d.mu.Lock()
	d.agent = e.State == libvirtgo.CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED
	d.mu.Unlock()
	d.changed()
}

// Agent implements driver.Driver. libvirt bounds what it takes from an agent: 10 MiB, and 2048 values of an answer.
func (d *Driver) Agent(ctx context.Context, call driver.AgentCall) (driver.AgentInfo, error) {
	d.mu.Lock()
	connected := d.agent
	d.mu.Unlock()
	dom, err := d.domain()
	if err == nil && (dom == nil || !connected) {
		err = driver.ErrNoAgent
	}
	if err != nil {
		return driver.AgentInfo{}, fmt.Errorf("asking the agent: %w", err)
	}
	defer free(dom)
	if err := dom.AgentSetResponseTimeout(int(driver.AgentPatience.Seconds()), 0); err != nil {
		return driver.AgentInfo{}, d.failed("asking the agent", err)
	}
	switch c := call.(type) {
	case driver.AskSystem:
		info, err := dom.GetGuestInfo(system, 0)
		if err != nil {
			return driver.AgentInfo{}, d.failed("asking the agent for its system", err)
		}
		return said(info), nil
	case driver.SetKeys:
		return driver.AgentInfo{}, d.failed("setting ssh keys by the agent", dom.AuthorizedSSHKeysSet(c.User, c.Keys, 0))
	case driver.SetPassword:
		return driver.AgentInfo{}, d.failed("setting a password by the agent", dom.SetUserPassword(c.User, c.Password, 0))
	}
	return d.tell(ctx, dom, call)
}

// tell asks what libvirt has no call of its own for.
func (d *Driver) tell(ctx context.Context, dom *libvirtgo.Domain, call driver.AgentCall) (info driver.AgentInfo, err error) {
	talk := func(message string) (string, error) {
		patience := driver.AgentPatience
		if end, ok := ctx.Deadline(); ok {
			patience = max(time.Second, min(patience, time.Until(end)))
		}
		return dom.QemuAgentCommand(message, libvirtgo.DomainQemuAgentCommandTimeout(patience.Seconds()), 0)
	}
	switch c := call.(type) {
	case driver.Ping:
		return info, d.failed("asking the agent for an answer", driver.PingBy(talk))
	case driver.Run:
		info.Ran, err = c.By(ctx, talk)
		return info, d.failed("running a program by the agent", err)
	}
	return info, fmt.Errorf("asking the agent: unknown call %T", call)
}

func said(info *libvirtgo.DomainGuestInfo) driver.AgentInfo {
	a := driver.AgentInfo{Hostname: info.Hostname}
	if tz := info.TimeZone; tz != nil && tz.NameSet {
		a.Timezone = fmt.Sprintf("%s, %d", tz.Name, tz.Offset)
	}
	if os := info.OS; os != nil {
		a.OS = driver.AgentOS{
			ID: os.ID, Name: os.Name, PrettyName: os.PrettyName, Version: os.Version, VersionID: os.VersionID,
			KernelRelease: os.KernelRelease, KernelVersion: os.KernelVersion, Machine: os.Machine,
		}
	}
	for _, i := range info.Interfaces {
		one := driver.AgentInterface{Name: i.Name, MAC: i.Hwaddr}
		for _, address := range i.Addrs {
			one.Addresses = append(one.Addresses, address.Addr)
		}
		a.Interfaces = append(a.Interfaces, one)
	}
	return a
}
