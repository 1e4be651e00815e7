// Package release is which release this build is.
package release

import (
	"runtime"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/version"
)

// Set by the linker (-X). Version is semantic, with a leading v. Commit is the one that the release was built of, and
// BuildDate when that was made, in RFC 3339: the same source gives the same program at any time of day.
var (
	Version   = "v0.1.0"
	Commit    = ""
	BuildDate = ""
)

// Info returns the release as the version endpoint and virtctl show it; build tells the program from others of the
// version, empty: that isn't known. What the linker wasn't told of the commit is taken from what Go knows of the checkout.
func Info(build string) version.Info {
	i := version.Info{
		GitVersion: Version,
		GoVersion:  runtime.Version(),
		Compiler:   runtime.Compiler,
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
	if build != "" {
		i.GitVersion += "+" + build
	}
	if Commit != "" {
		i.GitCommit, i.GitTreeState, i.BuildDate = Commit, "clean", BuildDate
		return i
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		checkout(&i, b.Settings)
	}
	return i
}

// checkout fills in the commit of the checkout that a program was built in.
func checkout(i *version.Info, settings []debug.BuildSetting) {
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			i.GitCommit = s.Value
		case s.Key == "vcs.time":
			i.BuildDate = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			i.GitTreeState = "dirty"
		case s.Key == "vcs.modified":
			i.GitTreeState = "clean"
		}
	}
}
