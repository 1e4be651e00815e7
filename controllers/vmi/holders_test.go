package vmi

import (
	"context"
	"fmt"
	"sync"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/controllers/vmi/plan"
	"virtstack.io/virtstack/machine/config"
)

// writer is a VMI with a disk on claim "data".
func writer(name string, shareable bool) *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: name, UID: types.UID("uid-of-" + name)}}
	vmi.Spec.Domain.Devices.Disks = []v1.Disk{{Name: "disk", Shareable: &shareable}}
	vmi.Spec.Volumes = []v1.Volume{{Name: "disk", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{
		PersistentVolumeClaimVolumeSource: k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}}
	return vmi
}

func podOf(t *testing.T, vmi *v1.VirtualMachineInstance) *k8sv1.Pod {
	t.Helper()
	pod, err := podspec.Render(vmi, config.From(nil), "virt-launcher:test", podspec.Claims{"data": true})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// podless is a cache that has seen no Pod yet.
type podless struct{ client.Client }

func (p podless) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*k8sv1.Pod); ok {
		return apierrors.NewNotFound(k8sv1.Resource("pods"), key.Name)
	}
	return p.Client.Get(ctx, key, o, opts...)
}

func claiming(t *testing.T, objects ...client.Object) *Controller {
	t.Helper()
	c, _ := loops(t, interceptor.Funcs{})
	live := fake.NewClientBuilder().WithScheme(c.Client.Scheme()).WithObjects(objects...).
		WithIndex(&v1.VirtualMachineInstance{}, claimIndex, claimsOf).Build()
	c.Client, c.Live = live, live
	return c
}

// Many VMIs that start at once on one claim, from a cache that shows no Pod, get one Pod between them.
func TestOneLauncherWritesToAClaim(t *testing.T) {
	const many = 20
	var objects []client.Object
	for i := range many {
		objects = append(objects, writer(fmt.Sprint("vm-", i), false))
	}
	c := claiming(t, objects...)
	c.Client = podless{c.Client}
	var all sync.WaitGroup
	for _, o := range objects {
		vmi := o.(*v1.VirtualMachineInstance)
		pod := podOf(t, vmi)
		all.Go(func() {
			if err := c.create(t.Context(), plan.CreatePod{VMI: vmi, Pod: pod}); err != nil && !apierrors.IsConflict(err) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var pods k8sv1.PodList
	if err := c.Live.(client.Client).List(t.Context(), &pods); err != nil || len(pods.Items) != 1 {
		t.Errorf("%d Pods write to one claim (%v)", len(pods.Items), err)
	}
}

func TestWhoHoldsAClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		ours, theirs bool // shareable
		phase        k8sv1.PodPhase
		held         bool
	}{
		"neither shares":  {false, false, k8sv1.PodRunning, true},
		"not there yet":   {false, false, k8sv1.PodPending, true},
		"both share":      {true, true, k8sv1.PodRunning, false},
		"ours is for one": {false, true, k8sv1.PodRunning, true},
		"theirs is":       {true, false, k8sv1.PodRunning, true},
		"theirs ended":    {false, false, k8sv1.PodSucceeded, false},
		"theirs failed":   {false, false, k8sv1.PodFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := writer("ours", tc.ours), writer("theirs", tc.theirs)
			pod := podOf(t, theirs)
			pod.Status.Phase = tc.phase
			c := claiming(t, ours, theirs, pod)
			rivals, err := c.rivals(t.Context(), ours)
			if err != nil {
				t.Fatal(err)
			}
			held, err := c.held(t.Context(), c.Live, rivals)
			if err != nil || (held["data"] == "theirs") != tc.held {
				t.Errorf("held by %v, %v", held, err)
			}
			if got := c.heirs(t.Context(), pod); (len(got) > 0) != plan.Finished(pod) {
				t.Errorf("looked at again when the Pod is %s: %v", tc.phase, got)
			}
		})
	}
}
