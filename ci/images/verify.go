package main

import (
	"context"
	"fmt"
	"time"

	"virtstack.io/virtstack/ci/images/launcher"
)

// verify runs what images hold, all of them if none is named. The images must have been built.
func (b *builder) verify(ctx context.Context, names []string) error {
	recipes, err := b.named(names)
	if err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	checks := map[string]func(context.Context) error{
		"virt-launcher": func(ctx context.Context) error {
			return launcher.Verify(ctx, b.packages, b.cached("bin", "virt-launcher"), b.cache)
		},
		"guest": func(ctx context.Context) error { return b.guest().Verify(ctx, b.log) },
	}
	for _, r := range recipes {
		check, ok := checks[r.name]
		if !ok {
			continue
		}
		start := time.Now()
		if err := check(ctx); err != nil {
			return fmt.Errorf("verifying image %s: %w", r.name, err)
		}
		fmt.Fprintf(b.log, "%s: verified in %.1fs\n", r.name, time.Since(start).Seconds())
	}
	return nil
}
