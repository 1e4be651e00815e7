// Package health tells what Git tools make of an object: kstatus by itself, Flux with our expressions, and Argo CD with
// our scripts. Both packs are in bundles/health.
package health

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// scriptKey is what the keys of argocd-cm begin with that hold scripts; <group>_<kind> follows.
const scriptKey = "resource.customizations.health."

// scriptTime is what Argo CD gives a script.
const scriptTime = time.Second

// Tools are the health checks of the three.
type Tools struct {
	flux map[schema.GroupKind]*cel.StatusEvaluator
	argo map[string]string
}

// Verdict is what each tool says of an object, in its own words.
type Verdict struct {
	KStatus string // Current, InProgress, Failed or Terminating
	Flux    string // the same; Unknown where an expression can't be evaluated: Flux waits then
	Argo    string // Healthy, Progressing, Degraded or Suspended
	Says    string // Argo CD's message
}

// Open reads the packs beneath the root of the repository.
func Open(root fs.FS) (*Tools, error) {
	t := &Tools{flux: map[schema.GroupKind]*cel.StatusEvaluator{}}
	var flux struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := read(root, "bundles/health/flux/health-checks.yaml", &flux); err != nil {
		return nil, err
	}
	for _, check := range flux.Spec.HealthCheckExprs {
		e, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			return nil, fmt.Errorf("reading the expressions of %s: %w", check.Kind, err)
		}
		t.flux[schema.FromAPIVersionAndKind(check.APIVersion, check.Kind).GroupKind()] = e
	}
	var argo k8sv1.ConfigMap
	err := read(root, "bundles/health/argo/argocd-cm.yaml", &argo)
	t.argo = argo.Data
	return t, err
}

func read(root fs.FS, file string, into any) error {
	raw, err := fs.ReadFile(root, file)
	if err == nil {
		err = yaml.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}

// Of returns what the tools say of an object. A kind that a pack doesn't have is an error.
func (t *Tools) Of(ctx context.Context, u *unstructured.Unstructured) (Verdict, error) {
	kind := u.GroupVersionKind().GroupKind()
	expressions, script := t.flux[kind], t.argo[scriptKey+kind.Group+"_"+kind.Kind]
	if expressions == nil || script == "" {
		return Verdict{}, fmt.Errorf("kind %s: a pack doesn't have it", kind)
	}
	plain, err := status.Compute(u)
	if err != nil {
		return Verdict{}, fmt.Errorf("asking kstatus of %s: %w", u.GetName(), err)
	}
	v := Verdict{KStatus: plain.Status.String(), Flux: status.UnknownStatus.String()}
	if r, err := expressions.Evaluate(ctx, u); err == nil {
		v.Flux = r.Status.String()
	} else if u.Object["status"] != nil {
		return Verdict{}, fmt.Errorf("asking Flux of %s: %w", u.GetName(), err)
	}
	v.Argo, v.Says, err = run(ctx, script, u)
	if err != nil {
		return Verdict{}, fmt.Errorf("asking Argo CD of %s: %w", u.GetName(), err)
	}
	return v, nil
}

// run runs a script with what Argo CD gives one: the object, the base and table libraries, and little time.
func run(ctx context.Context, script string, u *unstructured.Unstructured) (health, message string, err error) {
	ctx, cancel := context.WithTimeout(ctx, scriptTime)
	defer cancel()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	l.SetContext(ctx)
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return "", "", err
		}
	}
	l.SetGlobal("obj", value(l, u.Object))
	if err := l.DoString(script); err != nil {
		return "", "", err
	}
	said, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", fmt.Errorf("it returns a %s, not a table", l.Get(-1).Type())
	}
	return lua.LVAsString(said.RawGetString("status")), lua.LVAsString(said.RawGetString("message")), nil
}

// value returns a value of JSON as Lua has it.
func value(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		t := l.NewTable()
		for _, item := range v {
			t.Append(value(l, item))
		}
		return t
	case map[string]any:
		t := l.NewTable()
		for key, item := range v {
			t.RawSetString(key, value(l, item))
		}
		return t
	}
	return lua.LNil
}
