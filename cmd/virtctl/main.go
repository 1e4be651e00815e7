// virtctl works with virtual machines from the command line, also as a plugin of kubectl.
package main

import (
	"os"

	"virtstack.io/virtstack/virtctl"
)

func main() { os.Exit(virtctl.Execute()) }
