package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
)

// patience bounds one call of the plugin, all networks together.
const patience = time.Minute

// conf is what the node's configuration says.
type conf struct {
	types.PluginConf
	// Kubeconfig reaches the API server as the node.
	Kubeconfig string `json:"kubeconfig"`
	// Cache is a directory for what was attached, which is all that is needed to detach it.
	Cache string `json:"cache"`
	// Delegate is the list of plugins of the cluster's own network.
	Delegate json.RawMessage `json:"delegate"`
	// Runtime is what the container runtime adds for plugins that can do it, such as portMappings.
	Runtime map[string]any `json:"runtimeConfig"`
}

// podArgs are what a container runtime says of the Pod in CNI_ARGS.
type podArgs struct {
	types.CommonArgs
	K8S_POD_NAME, K8S_POD_NAMESPACE types.UnmarshallableString
}

// status is one entry of the annotation that tells of the networks.
type status struct {
	Name      string   `json:"name"`
	Interface string   `json:"interface"`
	IPs       []string `json:"ips,omitempty"`
	MAC       string   `json:"mac,omitempty"`
	Default   bool     `json:"default,omitempty"`
}

func read(args *skel.CmdArgs) (conf, *libcni.CNIConfig, error) {
	c := conf{Cache: "/var/lib/cni/multinet"}
	if err := json.Unmarshal(args.StdinData, &c); err != nil {
		return c, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return c, libcni.NewCNIConfigWithCacheDir(filepath.SplitList(os.Getenv("CNI_PATH")), c.Cache, nil), nil
}

func add(args *skel.CmdArgs) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, plugins, err := read(args)
	if err != nil {
		return err
	}
	var of podArgs
	if err := types.LoadArgs(args.Args, &of); err != nil {
		return err
	}
	k, err := open(c.Kubeconfig, string(of.K8S_POD_NAMESPACE), string(of.K8S_POD_NAME))
	if err != nil {
		return err
	}
	wanted, err := k.wanted(ctx, c.Delegate)
	if err != nil {
		return err
	}
	var main types.Result
	var told []status
	for i, w := range wanted {
		result, err := attach(ctx, plugins, args, c, w)
		if err != nil {
			return fmt.Errorf("attaching network %s: %w", w.name, err)
		}
		if i == 0 {
			main = result
		}
		told = append(told, w.status(result))
	}
	if err := k.tell(ctx, told); err != nil {
		return err
	}
	return types.PrintResult(main, c.CNIVersion)
}

func attach(ctx context.Context, plugins *libcni.CNIConfig, args *skel.CmdArgs, c conf, w wanted) (types.Result, error) {
	list, err := listOf(w.config, w.name)
	if err != nil {
		return nil, err
	}
	rt := &libcni.RuntimeConf{ContainerID: args.ContainerID, NetNS: args.Netns, IfName: w.nic, CapabilityArgs: map[string]any{}}
	for _, pair := range strings.Split(args.Args, ";") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			rt.Args = append(rt.Args, [2]string{key, value})
		}
	}
	if w.isDefault {
		rt.IfName, rt.CapabilityArgs = args.IfName, c.Runtime
	}
	if w.mac != "" { // plugins look for it in either place
		rt.Args = append(rt.Args, [2]string{"MAC", w.mac})
		rt.CapabilityArgs["mac"] = w.mac
	}
	return plugins.AddNetworkList(ctx, list, rt)
}

// listOf reads a configuration as a list; one of a single plugin is a list of one.
func listOf(raw []byte, name string) (*libcni.NetworkConfigList, error) {
	var probe map[string]any
	if err := json.Unmarshal(raw, &probe); err != nil {
		return nil, fmt.Errorf("reading its configuration: %w", err)
	}
	if probe["name"] == nil {
		probe["name"] = strings.ReplaceAll(name, "/", "-")
	}
	if probe["plugins"] == nil {
		plugin := map[string]any{}
		for key, value := range probe {
			plugin[key] = value
		}
		delete(plugin, "name")
		delete(plugin, "cniVersion")
		probe = map[string]any{"name": probe["name"], "cniVersion": probe["cniVersion"], "plugins": []any{plugin}}
	}
	whole, err := json.Marshal(probe)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromBytes(whole)
}

// status says what was attached: the interface in the Pod and its addresses.
func (w wanted) status(result types.Result) status {
	s := status{Name: w.name, Interface: w.nic, Default: w.isDefault}
	r, err := current.NewResultFromResult(result)
	if err != nil {
		return s
	}
	for _, i := range r.Interfaces {
		if i.Sandbox != "" {
			s.MAC = i.Mac
		}
	}
	for _, ip := range r.IPs {
		s.IPs = append(s.IPs, ip.Address.IP.String())
	}
	return s
}

// del detaches all that was attached, the last first, from what the cache says: the Pod may be gone by now.
func del(args *skel.CmdArgs) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, plugins, err := read(args)
	if err != nil {
		return err
	}
	attached, err := plugins.GetCachedAttachments(args.ContainerID)
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing was ever attached
	}
	if err != nil {
		return err
	}
	var errs []error
	for i := len(attached) - 1; i >= 0; i-- {
		a := attached[i]
		list, err := libcni.ConfListFromBytes(a.Config)
		if err == nil {
			err = plugins.DelNetworkList(ctx, list, &libcni.RuntimeConf{
				ContainerID: a.ContainerID, NetNS: args.Netns, IfName: a.IfName, Args: a.CniArgs, CapabilityArgs: a.CapabilityArgs,
			})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
