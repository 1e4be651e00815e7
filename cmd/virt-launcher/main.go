// Command virt-launcher runs the guest of one VMI.
package main

import (
	"os"

	"virtstack.io/virtstack/launcher"
)

func main() { os.Exit(launcher.Execute()) }
