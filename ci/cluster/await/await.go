// Package await waits for what is true later.
package await

import (
	"context"
	"fmt"
	"time"
)

// True asks cond every interval until it returns true, and fails when ctx ends first or cond fails. what completes
// "waiting for …" in the error.
func True(ctx context.Context, what string, every time.Duration, cond func(context.Context) (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := cond(ctx)
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
