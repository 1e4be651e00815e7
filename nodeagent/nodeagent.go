// Package nodeagent is virt-handler: it wires the parts that run the virtual machines of one node.
package nodeagent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/process"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/nodeagent/certificate"
	"virtstack.io/virtstack/nodeagent/device"
	"virtstack.io/virtstack/nodeagent/guest"
	"virtstack.io/virtstack/nodeagent/host"
	"virtstack.io/virtstack/nodeagent/link"
	"virtstack.io/virtstack/nodeagent/node"
	"virtstack.io/virtstack/nodeagent/podfs"
	"virtstack.io/virtstack/nodeagent/realtime"
	"virtstack.io/virtstack/nodeagent/stream"
)

// nodeName is the environment variable with the name of the node that the agent runs on: the cache is limited to it
// before any flag is read.
const nodeName = "NODE_NAME"

type settings struct {
	node                        string
	pods, probe, caFile         string
	kubelet                     string
	devicePlugins, cdi, address string
}

func (f *settings) bind(fs *flag.FlagSet) {
	fs.StringVar(&f.pods, "pods-dir", "/var/lib/kubelet/pods", "the kubelet's directory of Pods")
	fs.StringVar(&f.probe, "probe-dir", "/var/lib/virtstack/probe", "where virt-launcher probe wrote what QEMU can do here")
	fs.StringVar(&f.kubelet, "kubelet-dir", "/var/lib/virtstack/kubelet", "the kubelet's directory, read only")
	fs.StringVar(&f.caFile, "ca-file", "/etc/virtstack/ca/"+names.CABundleKey, "bundle of the roots that virt-api is verified with, read again at each handshake")
	fs.StringVar(&f.devicePlugins, "device-plugins-dir", "/var/lib/kubelet/device-plugins", "the kubelet's directory of device plugins")
	fs.StringVar(&f.cdi, "cdi-dir", "/var/run/cdi", "the container runtime's directory of CDI specifications")
	fs.StringVar(&f.address, "bind-address", fmt.Sprintf(":%d", names.HandlerPort), "address of the streams for virt-api")
}

// Execute runs virt-handler until it is told to stop and returns the exit code.
func Execute() int {
	f := &settings{node: os.Getenv(nodeName)}
	return process.Process{
		Name:  names.Handler,
		Cache: cacheOf(f.node),
		Flags: f.bind,
		QPS:   50, Burst: 100,
		Setup: f.setUp,
	}.Execute()
}

// cacheOf limits what is watched to one node: there may be 10,000 VMIs on the others.
func cacheOf(node string) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v1.VirtualMachineInstance{}: {Field: fields.OneTermEqualSelector("status.nodeName", node)},
		&k8sv1.Pod{}: {
			Field:     fields.OneTermEqualSelector("spec.nodeName", node),
			Label:     labels.SelectorFromSet(labels.Set{v1.AppLabel: names.LauncherApp}),
			Transform: cache.TransformStripManagedFields(),
		},
		&k8sv1.Node{}:  {Field: fields.OneTermEqualSelector("metadata.name", node), Transform: cache.TransformStripManagedFields()},
		&v1.KubeVirt{}: {Namespaces: map[string]cache.Config{names.Namespace: {}}},
	}}
}

func (f *settings) setUp(ctx context.Context, mgr ctrl.Manager) error {
	if f.node == "" {
		return errors.New("environment variable " + nodeName + " is empty: it must name the node")
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &k8sv1.Pod{}, guest.OwnerIndex, guest.Owner); err != nil {
		return fmt.Errorf("indexing Pods: %w", err)
	}
	probe, err := host.Probe(f.probe)
	if err != nil {
		return err
	}
	facts, err := host.Read(os.DirFS("/"), probe)
	if err != nil {
		return fmt.Errorf("finding out what the node can do: %w", err)
	}
	pods, err := podfs.Open(f.pods)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	here, news := guest.Local{Pods: pods}, newNews()
	launchers := &link.Launchers{
		Dial: func(ctx context.Context, pod types.UID) (net.Conn, error) {
			return here.Dial(ctx, pod, guestv1.GuestSocket)
		},
		Changed: news.tell,
	}
	c := &guest.Controller{
		Node:  f.node,
		Cache: mgr.GetCache(), Live: mgr.GetAPIReader(),
		Status:    apply.Applier{Client: mgr.GetClient(), Manager: guest.Manager},
		Events:    mgr.GetEventRecorder(names.Handler),
		Launchers: launchers, Network: &guest.Networks{Local: here}, Memory: here, Facts: facts,
		VCPUs: realtime.OfPods,
	}
	holder := &certificate.Holder{Node: f.node, Client: kube, CAFile: f.caFile}
	return errors.Join(
		f.addNode(mgr, facts),
		addGuests(mgr, c, news),
		mgr.Add(holder),
		mgr.Add(&stream.Server{Node: f.node, Address: f.address, Cache: mgr.GetCache(), Identity: holder,
			Dial: func(ctx context.Context, pod types.UID) (net.Conn, error) {
				return here.Dial(ctx, pod, guestv1.ConsoleSocket)
			},
			Verbs: stream.Verbs(launchers)}),
		mgr.AddReadyzCheck("certificate", func(*http.Request) error { _, err := holder.Certificate(); return err }),
	)
}

// addNode adds the device plugins and the Node's labels, which tell whether they serve.
func (f *settings) addNode(mgr ctrl.Manager, facts host.Facts) error {
	news := newNews()
	plugins := &device.Plugins{
		Devices: []device.Device{device.KVM, device.Tun, device.Vhost, device.Vsock}, Count: config.From(nil).DevicesPerNode,
		Dir: f.devicePlugins, CDI: f.cdi,
		Changed: func() { news.tell(types.NamespacedName{Name: f.node}) },
	}
	labeller := &node.Labeller{Node: f.node, Client: mgr.GetClient(), Facts: facts, Serving: plugins.Serving,
		StaticCPUs: func() bool { return host.StaticCPUs(os.DirFS(f.kubelet)) }}
	return errors.Join(
		labelLoop(mgr, labeller, news),
		mgr.Add(plugins),
		mgr.AddReadyzCheck("devices", func(*http.Request) error {
			if !plugins.Serving() {
				return errors.New("the kubelet has not been told of the devices")
			}
			return nil
		}),
	)
}

// addGuests adds the loop of the node's VMIs.
func addGuests(mgr ctrl.Manager, c *guest.Controller, news news) error {
	return errors.Join(guestLoop(mgr, c, news), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		c.Launchers.Close()
		return nil
	})))
}
