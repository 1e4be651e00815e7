// Package controllers is virt-controller: the loops that turn VMs into VMIs and VMIs into launcher Pods.
package controllers

import (
	"context"
	"errors"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	api "kubevirt.io/api/instancetype"
	instancetype "kubevirt.io/api/instancetype/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"virtstack.io/virtstack/controllers/node"
	"virtstack.io/virtstack/controllers/tally"
	"virtstack.io/virtstack/controllers/vm"
	"virtstack.io/virtstack/controllers/vmi"
	"virtstack.io/virtstack/kube/process"
	"virtstack.io/virtstack/machine/names"
)

// workers is how many objects of a kind are worked on at a time.
const workers = 10

// imageVariable names the environment variable that holds the launcher's image.
const imageVariable = "VIRT_LAUNCHER_IMAGE"

var errNoImage = errors.New(imageVariable + " is not set: it names the image of launcher Pods")

// Execute runs virt-controller and returns its exit code.
func Execute() int {
	return process.Process{
		Name:       names.Controller,
		Scheme:     instancetype.AddToScheme,
		Cache:      trimmed(),
		Elect:      true,
		FreshReads: true,
		Setup:      setup,
	}.Execute()
}

func setup(_ context.Context, mgr ctrl.Manager) error {
	image := os.Getenv(imageVariable)
	if image == "" {
		return errNoImage
	}
	return errors.Join(
		(&vm.Controller{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(names.Controller)}).Setup(mgr, workers),
		(&vmi.Controller{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(names.Controller), Image: image}).Setup(mgr, workers),
		(&node.Controller{Client: mgr.GetClient(), Events: mgr.GetEventRecorder(names.Controller)}).Setup(mgr),
		metrics.Registry.Register(&tally.Collector{Cache: mgr.GetCache(), Leading: mgr.Elected()}),
	)
}

// trimmed is a cache of what the loops look at: launcher Pods alone, nodes without their images, managed fields only
// where an apply compares them.
func trimmed() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v1.VirtualMachine{}:         {},
		&v1.VirtualMachineInstance{}: {},
		&v1.KubeVirt{}:               {Namespaces: map[string]cache.Config{names.Namespace: {}}},
		&k8sv1.Pod{}: {
			Label:     labels.SelectorFromSet(labels.Set{v1.AppLabel: names.LauncherApp}),
			Transform: stripPod,
		},
		&appsv1.ControllerRevision{}:   {Label: storedTypes()},
		&k8sv1.Node{}:                  {Transform: stripNode},
		&k8sv1.PersistentVolumeClaim{}: {Transform: stripClaim},
	}}
}

// storedTypes selects the revisions of instancetypes and preferences.
func storedTypes() labels.Selector {
	kind, err := labels.NewRequirement(api.ControllerRevisionObjectKindLabel, selection.Exists, nil)
	if err != nil {
		return labels.Nothing() // a constant label is one
	}
	return labels.NewSelector().Add(*kind)
}

// stripPod leaves what this process manages: it tells which labels are ours to drop.
func stripPod(in any) (any, error) {
	if p, ok := in.(*k8sv1.Pod); ok {
		p.ManagedFields = slices.DeleteFunc(p.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager != vmi.Manager })
	}
	return in, nil
}

// stripClaim leaves what a volume's status tells of its claim.
func stripClaim(in any) (any, error) {
	if c, ok := in.(*k8sv1.PersistentVolumeClaim); ok {
		c.ManagedFields, c.Labels, c.Annotations = nil, nil, nil
	}
	return in, nil
}

func stripNode(in any) (any, error) {
	if n, ok := in.(*k8sv1.Node); ok {
		n.ManagedFields, n.Status = nil, k8sv1.NodeStatus{}
	}
	return in, nil
}
