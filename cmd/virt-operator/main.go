// Command virt-operator installs virtstack; "virt-operator bundles" applies what Bundles name.
package main

import (
	"os"

	"virtstack.io/virtstack/controllers/operator"
)

func main() { os.Exit(operator.Execute()) }
