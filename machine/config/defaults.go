package config

import (
	"encoding/json"
	"maps"

	v1 "kubevirt.io/api/core/v1"
)

// Defaults is the part of a configuration that a VMI's spec takes on where its VM leaves a field open. A VMI keeps those
// that it was made with, so that a later change of the configuration is no change of its VM.
type Defaults struct {
	Architecture     string              `json:"architecture,omitempty"`
	CPUModel         string              `json:"cpuModel,omitempty"`
	EvictionStrategy v1.EvictionStrategy `json:"evictionStrategy,omitempty"`
	NetworkInterface string              `json:"networkInterface,omitempty"`
	// MachineTypes are by architecture.
	MachineTypes map[string]string `json:"machineTypes,omitempty"`
}

// Defaults returns those of the configuration.
func (c Config) Defaults() Defaults {
	return Defaults{c.Architecture, c.CPUModel, c.EvictionStrategy, c.NetworkInterface, maps.Clone(c.machines)}
}

// With returns the configuration with other defaults.
func (c Config) With(d Defaults) Config {
	c.Architecture, c.CPUModel, c.EvictionStrategy, c.NetworkInterface = d.Architecture, d.CPUModel, d.EvictionStrategy, d.NetworkInterface
	c.machines = maps.Clone(d.MachineTypes)
	return c
}

// String returns the defaults as one line, which ParseDefaults reads.
func (d Defaults) String() string {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings, and a map of them
	}
	return string(text)
}

// ParseDefaults reads what String wrote; false for anything else, as of a VMI that has none.
func ParseDefaults(text string) (Defaults, bool) {
	var d Defaults
	err := json.Unmarshal([]byte(text), &d)
	return d, err == nil
}
