// Package condition sets conditions the way writers.md asks: every condition a controller owns every time, and
// lastTransitionTime moved only when the status flips.
package condition
