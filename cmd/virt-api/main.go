// virt-api serves consoles and the verbs of virtual machines behind the API server, and its admission webhooks.
package main

import (
	"os"

	"virtstack.io/virtstack/controllers/subresource"
)

func main() { os.Exit(subresource.Execute()) }
