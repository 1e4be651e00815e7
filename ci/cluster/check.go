package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"virtstack.io/virtstack/ci/cluster/host"
	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/proc"
)

// check says what of the cluster is on this machine beside files in its state directory.
func check(d layout.Dir, out io.Writer) error {
	left, err := leftovers(d)
	if err != nil {
		return err
	}
	for _, l := range left {
		fmt.Fprintln(out, "left:", l)
	}
	if len(left) > 0 {
		return errors.New("the cluster left something behind, or runs")
	}
	fmt.Fprintln(out, "nothing is left")
	return nil
}

// leftovers names processes, mounts, links (with which routes go), loop devices, control groups and changed sysctls.
// The host's packet filters are never touched: kube-proxy works in the nodes' network namespaces.
func leftovers(d layout.Dir) ([]string, error) {
	var left []string
	procs, err := proc.Marked(d.State())
	for _, id := range procs {
		left = append(left, "process "+id.Name())
	}
	mounts, err2 := host.Mounts(d.State())
	for _, m := range mounts {
		left = append(left, "mount "+m)
	}
	for _, l := range host.Links() {
		left = append(left, "link "+l)
	}
	loops, err3 := host.Loops(d.State())
	for _, l := range loops {
		left = append(left, "loop device "+l.Device+" on "+l.Backing)
	}
	groups, err4 := host.Groups()
	for _, g := range groups {
		left = append(left, "control group "+g)
	}
	if f := sysctls(d).File; exists(f) {
		left = append(left, "sysctls, to be restored from "+f)
	}
	return left, errors.Join(err, err2, err3, err4)
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}
