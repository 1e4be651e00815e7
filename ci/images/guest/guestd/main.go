// Guestd is the test guest's own program: "guestd seed DIR" applies a cloud-init NoCloud seed, "guestd serve" answers
// on port 80 with the guest's name, a counter and its uptime. A counter that goes on proves that the guest's memory
// survived whatever was done to it.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "guestd:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "seed":
		return applySeed(args[1])
	case len(args) == 1 && args[0] == "serve":
		return serve()
	}
	return fmt.Errorf("usage: guestd seed DIR | guestd serve")
}
