package host

import (
	"encoding/json"
	"io/fs"
)

// maxState bounds the kubelet's record of the CPUs that it has given away, in bytes.
const maxState = 1 << 20

// StaticCPUs tells whether the kubelet gives whole CPUs to Pods that ask for them, by its own directory; a kubelet that
// says nothing doesn't.
func StaticCPUs(kubelet fs.FS) bool {
	raw, err := read(kubelet, "cpu_manager_state", maxState)
	var state struct {
		PolicyName string `json:"policyName"`
	}
	return err == nil && json.Unmarshal(raw, &state) == nil && state.PolicyName == "static"
}
