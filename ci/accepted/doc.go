// Package accepted holds the test that a machine which admission accepts is one that every later stage takes: filling
// it, rendering its launcher Pod, converting it to a domain.
//
// The machines are made of those in the manifests of other tests, changed in places. A run of the tests makes some
// thousands; `go test ./ci/accepted -args -machines 200000` looks longer, and so do the fuzz targets, each with
// `go test PACKAGE -run ^$ -fuzz NAME -fuzztime 5m`: FuzzAcceptedMachinesConvert here, FuzzAmounts and FuzzPaths of
// machine/validate, FuzzSeed of launcher/cloudinit, FuzzWrite of launcher/iso, FuzzWhatIsTakenHasOneSpelling of machine/mac.
// What they find is written below testdata/fuzz and is a test from then on.
package accepted
