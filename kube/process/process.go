// Package process is what every one of our control plane processes has: flags, signals, a controller-runtime manager
// with health and metrics, leader election.
package process
