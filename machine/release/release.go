// Package release is which release this build is.
package release

import (
	"runtime"

	"k8s.io/apimachinery/pkg/version"
)

// Set by the linker (-X). Version is semantic, with a leading v.
var (
	Version   = "v0.1.0"
	Commit    = ""
	BuildDate = ""
)

// Info returns the release as the version endpoint and virtctl show it.
func Info() version.Info {
	return version.Info{
		GitVersion:   Version,
		GitCommit:    Commit,
		GitTreeState: "clean",
		BuildDate:    BuildDate,
		GoVersion:    runtime.Version(),
		Compiler:     runtime.Compiler,
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
	}
}
