// Package verdicts shows that what virtctl validate says of a manifest is what a real API server with the webhooks of
// the component bundle says: one corpus, both verdicts. It has tests only.
package verdicts
