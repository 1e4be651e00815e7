package build

import (
	"context"
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// one has room for the build that runs kustomize: the schema it works with is one of the process.
var one = make(chan struct{}, 1)

// enter waits until no other build runs kustomize, and makes it start from the schema of Kubernetes' own kinds; leave
// leaves nothing of this build to others. The schema takes longer than the build of a dozen objects: it is made once for
// all parts.
func enter(ctx context.Context) (leave func(), err error) {
	select {
	case one <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the builds of others to end: %w", ctx.Err())
	}
	openapi.ResetOpenAPI()
	_ = openapi.Schema()
	return func() {
		openapi.ResetOpenAPI()
		<-one
	}, nil
}

// run runs kustomize in dir: without plugins, and with files from above dir. It panics at some objects that are none.
func (t *tree) run(dir string) (built resmap.ResMap, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize gave up: %v", r)
		}
	}()
	k := krusty.MakeKustomizer(&krusty.Options{LoadRestrictions: types.LoadRestrictionsNone, PluginConfig: types.DisabledPluginConfig()})
	return k.Run(t, "/"+dir)
}
