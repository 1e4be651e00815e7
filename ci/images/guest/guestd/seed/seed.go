// Package seed reads the part of cloud-init's NoCloud data that the test guest understands.
package seed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Seed is what a guest was told at boot.
type Seed struct {
	Hostname string   // from user-data, else from meta-data
	Password string   // of root; empty: none is set
	Keys     []string // public keys that may log in as root
	Script   string   // for sh, empty: nothing to run
}

type userData struct {
	Hostname string            `json:"hostname"`
	Password string            `json:"password"`
	Keys     []string          `json:"ssh_authorized_keys"`
	RunCmd   []json.RawMessage `json:"runcmd"`
}

type metaData struct {
	Hostname string          `json:"local-hostname"`
	Keys     json.RawMessage `json:"public-keys"`
}

// Parse reads user-data and meta-data. User-data that starts with "#!" is a script and nothing else.
func Parse(user, meta []byte) (Seed, error) {
	var m metaData
	if err := yaml.Unmarshal(meta, &m); err != nil {
		return Seed{}, fmt.Errorf("reading meta-data: %w", err)
	}
	s := Seed{Hostname: m.Hostname, Keys: keys(m.Keys)}
	if bytes.HasPrefix(user, []byte("#!")) {
		s.Script = string(user)
		return s, nil
	}
	var u userData
	if err := yaml.Unmarshal(user, &u); err != nil {
		return Seed{}, fmt.Errorf("reading user-data: %w", err)
	}
	if u.Hostname != "" {
		s.Hostname = u.Hostname
	}
	s.Password, s.Keys = u.Password, append(s.Keys, u.Keys...)
	for _, c := range u.RunCmd {
		line, err := command(c)
		if err != nil {
			return Seed{}, err
		}
		s.Script += line + "\n"
	}
	return s, nil
}

// keys reads public-keys, which may be a list, or a map of names to keys.
func keys(raw json.RawMessage) []string {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	var named map[string]string
	if json.Unmarshal(raw, &named) != nil {
		return nil
	}
	for _, key := range named {
		list = append(list, key)
	}
	return list
}

// command turns an entry of runcmd into a line of shell: a string is one already, a list is a command and its arguments.
func command(raw json.RawMessage) (string, error) {
	var line string
	if json.Unmarshal(raw, &line) == nil {
		return line, nil
	}
	var args []string
	if err := json.Unmarshal(raw, &args); err != nil {
		return "", fmt.Errorf("reading runcmd: %s is neither a string nor a list of strings", raw)
	}
	for i, arg := range args {
		args[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return strings.Join(args, " "), nil
}
