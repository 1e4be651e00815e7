// Package lab drives the dev cluster as its users do, for the demo, the end-to-end tests and the benchmarks: kubectl,
// virtctl, git and a typed client, with deadlines everywhere.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	v1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"virtstack.io/virtstack/api/v1alpha1"
)

// Address of the machine as Pods and the shell both reach it; source: ci/cluster.
const HostAddress = "172.30.0.1"

// Lab is a checkout and the dev cluster that belongs to it.
type Lab struct {
	Root   string // of the checkout
	Config *rest.Config
	Client client.WithWatch
}

// Open finds the checkout from the working directory upwards and connects to its cluster.
func Open() (*Lab, error) {
	l, err := Here()
	if err != nil {
		return nil, err
	}
	if l.Config, err = clientcmd.BuildConfigFromFlags("", l.Kubeconfig()); err != nil {
		return nil, fmt.Errorf("reading the dev cluster's kubeconfig (is it up? make up): %w", err)
	}
	l.Config.UserAgent, l.Config.QPS = "lab", -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1.AddToScheme(scheme), instancetypev1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	l.Client, err = client.NewWithWatch(l.Config, client.Options{Scheme: scheme})
	return l, err
}

// Here finds the checkout as Open does, and connects to no cluster.
func Here() (*Lab, error) {
	log.SetLogger(logr.Discard()) // what is worth telling is told by errors
	root, err := findRoot()
	return &Lab{Root: root}, err
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "overlays")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("not inside a checkout: no directory here or above holds overlays/")
}

// State is where the cluster keeps what it made.
func (l *Lab) State() string { return filepath.Join(l.Root, ".cluster") }

// Kubeconfig is the administrator's.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.State(), "kubeconfig") }

// Command prepares one of the cluster's or our programs, with the kubeconfig in its environment.
func (l *Lab) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	bin := filepath.Join(l.State(), "bin")
	if path := filepath.Join(bin, name); executable(path) {
		name = path
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = l.Root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}

// Run runs a program and returns what it printed, without the last newline; an error carries standard error.
func (l *Lab) Run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := l.Command(ctx, name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// Kubectl runs kubectl.
func (l *Lab) Kubectl(ctx context.Context, args ...string) (string, error) {
	return l.Run(ctx, "kubectl", args...)
}

// Apply applies a manifest given as text, server-side.
func (l *Lab) Apply(ctx context.Context, manifest string) (string, error) {
	cmd := l.Command(ctx, "kubectl", "apply", "--server-side", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl apply: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Namespace makes a namespace unless it is there.
func (l *Lab) Namespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}
	ns.Name = name
	return client.IgnoreAlreadyExists(l.Client.Create(ctx, ns))
}

// Until asks every 100 ms until done says true or the limit has passed; the error then names what was waited for and
// the last answer. What was asked within the limit may be answered later: a busy machine is no answer.
func Until(ctx context.Context, limit time.Duration, what string, done func(context.Context) (bool, string, error)) error {
	last := "never asked"
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		asked, cancel := context.WithTimeout(ctx, max(limit, 15*time.Second))
		defer cancel()
		ok, now, err := done(asked)
		if err != nil {
			last = err.Error()
			return false, nil
		}
		last = now
		return ok, nil
	})
	if err != nil {
		return fmt.Errorf("waiting %v for %s: %w; last seen: %s", limit, what, err, last)
	}
	return nil
}
