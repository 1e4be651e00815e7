package release

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"golang.org/x/sync/errgroup"
)

// definitionsDeadline is how long new kinds may take to be served.
const definitionsDeadline = 30 * time.Second

// Apply writes the changes: kinds, namespaces, classes and admission policies first, then the rest. Fields are taken from other managers:
// the release is what its owner has committed. The error is Refusals or Unanswered where one object is at fault.
func (r *Releaser) Apply(ctx context.Context, c Changes) error {
	definitions, rest := split(c.write)
	if err := r.write(ctx, definitions); err != nil {
		return err
	}
	if err := r.established(ctx, definitions); err != nil {
		return err
	}
	if len(c.later) > 0 {
		checked, err := r.Check(ctx, c.later)
		if err != nil {
			return err
		}
		rest = append(rest, checked.write...)
	}
	return r.write(ctx, rest)
}

func split(objects []*unstructured.Unstructured) (definitions, rest []*unstructured.Unstructured) {
	for _, o := range objects {
		if utils.IsClusterDefinition(o) || utils.IsClassDefinition(o) || o.GetKind() == policyKind {
			definitions = append(definitions, o)
		} else {
			rest = append(rest, o)
		}
	}
	return definitions, rest
}

// write writes kind by kind, what others need first, and several of one kind at a time.
func (r *Releaser) write(ctx context.Context, objects []*unstructured.Unstructured) error {
	sort.Sort(ssa.SortableUnstructureds(objects))
	for len(objects) > 0 {
		n := 1
		for n < len(objects) && objects[n].GroupVersionKind() == objects[0].GroupVersionKind() {
			n++
		}
		if err := r.writeAll(ctx, objects[:n]); err != nil {
			return err
		}
		objects = objects[n:]
	}
	return nil
}

func (r *Releaser) writeAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, o := range objects {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err // another has failed
			}
			if err := r.take(ctx, o); err != nil {
				return fmt.Errorf("applying: %w", failure(RefOf(o), cause(err)))
			}
			return nil
		})
	}
	return g.Wait()
}

// established waits until new kinds are served and namespaces can be used.
func (r *Releaser) established(ctx context.Context, definitions []*unstructured.Unstructured) error {
	if len(definitions) == 0 {
		return nil
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, definitionsDeadline, true, func(ctx context.Context) (bool, error) {
		last = Unhealthy(r.Health(ctx, Refs(definitions)))
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}
