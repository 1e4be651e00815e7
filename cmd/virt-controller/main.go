// Command virt-controller turns VMs into VMIs and VMIs into launcher Pods.
package main

import (
	"os"

	"virtstack.io/virtstack/controllers"
)

func main() { os.Exit(controllers.Execute()) }
