package build

import (
	"fmt"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// one is held by who runs kustomize: the schema it works with is one of the process.
var one sync.Mutex

// schema makes kustomize start from the schema of Kubernetes' own kinds; what it returns leaves nothing of this build to
// others. It takes longer than the build of a dozen objects: it is done once for all parts.
func schema() func() {
	openapi.ResetOpenAPI()
	_ = openapi.Schema()
	return openapi.ResetOpenAPI
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
