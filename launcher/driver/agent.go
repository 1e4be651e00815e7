package driver

import (
	"errors"
	"time"
)

// ErrNoAgent is returned by Agent while no agent is connected.
var ErrNoAgent = errors.New("no guest agent is connected")

// AgentPatience is how long an agent may take for one answer. A hostile one takes all of it, every time.
const AgentPatience = 5 * time.Second

// AgentCall is something that the agent in the guest can be asked for: AskSystem, SetKeys,
// SetPassword, Ping or Run.
type AgentCall interface{ agentCall() }

type (
	// AskSystem asks what system runs in the guest, and for its network interfaces.
	AskSystem struct{}
	// SetKeys replaces the ssh public keys with which a user may log in.
	SetKeys struct {
		User string
		Keys []string
	}
	// SetPassword replaces a user's password.
	SetPassword struct{ User, Password string }
	// Ping asks for nothing but an answer.
	Ping struct{}
	// Run runs a program in the guest and waits for its end, for as long as the caller's context lets it.
	Run struct {
		Path string
		Args []string
	}
)

func (AskSystem) agentCall()   {}
func (SetKeys) agentCall()     {}
func (SetPassword) agentCall() {}
func (Ping) agentCall()        {}
func (Run) agentCall()         {}

// AgentInfo is what an agent said: every word of it is the guest's, and a guest is believed nothing. See package
// launcher/agent for what becomes of it. What the agent doesn't know is empty.
type AgentInfo struct {
	Hostname string
	// Timezone is a name and the offset from UTC, such as "CET, 3600".
	Timezone   string
	OS         AgentOS
	Interfaces []AgentInterface
	// Ran is how the program of a Run ended.
	Ran AgentRan
}

// AgentRan is a program's end.
type AgentRan struct {
	// Exit is its exit code, or 128 and the number of the signal that ended it.
	Exit int
	// Output is the beginning of what it wrote, errors last.
	Output string
}

// AgentOS are the fields of the guest's os-release, and its kernel.
type AgentOS struct {
	ID, Name, PrettyName, Version, VersionID, KernelRelease, KernelVersion, Machine string
}

// AgentInterface is a network interface as the guest's system names it.
type AgentInterface struct {
	Name, MAC string
	// Addresses without a prefix length.
	Addresses []string
}
