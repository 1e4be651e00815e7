// Package stories runs the control plane's loops, one round at a time, on a real API server without nodes, and writes
// down what they do to it. The node's side (kubelet, node agent) is played by the story's commands.
package stories

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"virtstack.io/virtstack/controllers/vm"
	"virtstack.io/virtstack/controllers/vmi"
	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/kube/loop"
)

// errKilled ends a round as a crash would.
var errKilled = errors.New("killed")

// world is one story's: a namespace, the loops, and a clock that only the story moves.
type world struct {
	t         *testing.T
	admin     client.Client
	namespace string
	now       time.Time
	loops     map[string]loop.Rounder
	// log is what the loops wrote since the last command, kill the kind of write that ends a round, dead whether it did.
	log  []string
	kill string
	dead bool
	// rechecks is when each object's loop wants to look again.
	rechecks map[string]time.Time
}

func newWorld(t *testing.T) *world {
	env := kubetest.Start(t)
	w := &world{t: t, admin: env.Client, namespace: env.Namespace(t), now: time.Now().Truncate(time.Second), rechecks: map[string]time.Time{}}
	direct, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	watched := interceptor.NewClient(direct, w.spy())
	recorder := &events.FakeRecorder{}
	w.loops = map[string]loop.Rounder{
		"vm":  &vm.Controller{Client: watched, Live: watched, Events: recorder},
		"vmi": &vmi.Controller{Client: watched, Live: watched, Events: recorder, Image: "virt-launcher:test"},
	}
	return w
}

// spy writes down what the loops write, before it reaches the API server.
func (w *world) spy() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := w.wrote("create", o); err != nil {
				return err
			}
			err := c.Create(ctx, o, opts...)
			w.notBefore(o.GetCreationTimestamp().Time)
			return err
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := w.wrote("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := w.wrote("metadata", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := w.wrote(sub, o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// notBefore moves the story's clock to when the API server made something, so that nothing is younger than now and the
// time that the test itself takes plays no role.
func (w *world) notBefore(t time.Time) {
	if t.After(w.now) {
		w.now = t
	}
}

func (w *world) wrote(verb string, o client.Object) error {
	if w.dead {
		return errKilled
	}
	if verb == w.kill {
		w.dead = true
		w.log = append(w.log, "killed before "+verb)
		return errKilled
	}
	w.log = append(w.log, fmt.Sprintf("%s %s %s", verb, kind(o), o.GetName()))
	return nil
}

func kind(o client.Object) string {
	switch o.(type) {
	case *v1.VirtualMachine:
		return "vm"
	case *v1.VirtualMachineInstance:
		return "vmi"
	case *k8sv1.Pod:
		return "pod"
	}
	return fmt.Sprintf("%T", o)
}

// round runs one round of an object, named as vm/web.
func (w *world) round(object string) error {
	which, name, _ := strings.Cut(object, "/")
	recheck, err := w.loops[which].Round(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, w.now)
	w.rechecks[object] = recheck
	return err
}

// settle runs rounds of both loops until none of them writes.
func (w *world) settle(name string) error {
	for range 20 {
		before := len(w.log)
		for _, object := range []string{"vm/" + name, "vmi/" + name} {
			if err := w.round(object); err != nil {
				return err
			}
		}
		if len(w.log) == before {
			return nil
		}
	}
	return errors.New("20 rounds, and still writing")
}

var hashed = regexp.MustCompile(`(virt-launcher-[a-z0-9-]*)-[a-z2-7]{8}\b`)

// told returns the log and empties it. Names hashed from UIDs differ from run to run, so the hash is left out.
func (w *world) told() string {
	if len(w.log) == 0 {
		return "nothing\n"
	}
	out := strings.Join(w.log, "\n") + "\n"
	w.log = nil
	return hashed.ReplaceAllString(out, "$1-HASH")
}
