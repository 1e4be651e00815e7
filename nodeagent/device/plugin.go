package device

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/grpc"
	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"virtstack.io/virtstack/machine/names"
)

// Device is a device of the node that any number of launchers may use at once.
type Device struct {
	// Name is that of the device in our CDI kind.
	Name string
	// Resource is what a Pod asks for.
	Resource string
	// Path is the device's on the node and in the Pod.
	Path string
}

// Devices of a launcher.
var (
	KVM   = Device{Name: "kvm", Resource: names.KVMDevice, Path: "/dev/kvm"}
	Tun   = Device{Name: "tun", Resource: names.TunDevice, Path: "/dev/net/tun"}
	Vhost = Device{Name: "vhost-net", Resource: names.VhostDevice, Path: "/dev/vhost-net"}
	Vsock = Device{Name: "vhost-vsock", Resource: names.VsockDevice, Path: "/dev/vhost-vsock"}
)

// plugin serves one device to the kubelet. A device can be shared without end; count is what the kubelet is told.
type plugin struct {
	dp.UnimplementedDevicePluginServer
	device Device
	count  int
	stop   <-chan struct{}
}

// GetDevicePluginOptions answers that no call is needed before a container starts.
func (*plugin) GetDevicePluginOptions(context.Context, *dp.Empty) (*dp.DevicePluginOptions, error) {
	return &dp.DevicePluginOptions{}, nil
}

// ListAndWatch sends the devices once: they stay healthy as long as the node agent lives.
func (p *plugin) ListAndWatch(_ *dp.Empty, s grpc.ServerStreamingServer[dp.ListAndWatchResponse]) error {
	list := &dp.ListAndWatchResponse{Devices: make([]*dp.Device, p.count)}
	for i := range list.Devices {
		list.Devices[i] = &dp.Device{ID: p.device.Name + strconv.Itoa(i), Health: dp.Healthy}
	}
	if err := s.Send(list); err != nil {
		return err
	}
	select {
	case <-s.Context().Done():
	case <-p.stop:
	}
	return nil
}

// Allocate names the CDI device, whichever of the equal devices was chosen.
func (p *plugin) Allocate(_ context.Context, r *dp.AllocateRequest) (*dp.AllocateResponse, error) {
	if len(r.GetContainerRequests()) == 0 {
		return nil, fmt.Errorf("allocating %s: the request names no container", p.device.Resource)
	}
	a := &dp.AllocateResponse{}
	for range r.GetContainerRequests() {
		a.ContainerResponses = append(a.ContainerResponses, &dp.ContainerAllocateResponse{
			CdiDevices: []*dp.CDIDevice{{Name: cdiName(p.device)}},
		})
	}
	return a, nil
}
