// Package api holds what all zones of virtstack share; its subpackages hold the types that travel between them.
package api

// Version is the release that this binary was built as, "dev" unless the image builder stamped another one.
var Version = "dev"
