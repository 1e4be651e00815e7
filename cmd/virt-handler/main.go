// virt-handler runs the virtual machines of one node.
package main

import (
	"os"

	"virtstack.io/virtstack/nodeagent"
)

func main() { os.Exit(nodeagent.Execute()) }
