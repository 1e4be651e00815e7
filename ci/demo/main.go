// Command demo runs the main job of virtstack on the dev cluster: a commit in Git becomes a running VM, and its
// console is shown. It expects the cluster to be up and the images imported (make demo does both first).
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"virtstack.io/virtstack/ci/lab"
)

const (
	namespace = "vms"
	name      = "hello"
	login     = name + " login:"
)

//go:embed tenant.yaml
var tenant string

var start = time.Now()

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func say(format string, args ...any) {
	fmt.Printf("[%6.1fs] %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
}

func run(ctx context.Context) error {
	l, err := lab.Open()
	if err != nil {
		return err
	}
	say("installing: kubectl apply --server-side -k overlays/dev, then the KubeVirt CR")
	if err := l.Install(ctx); err != nil {
		return err
	}
	say("KubeVirt is Available")
	repo, err := prepare(ctx, l)
	if err != nil {
		return err
	}
	commit, hops, err := commitVM(ctx, l, repo)
	if err != nil {
		return err
	}
	if err := hops.Wait(ctx, 3*time.Minute, "guest started"); err != nil {
		return err
	}
	running := last(hops.Seen())
	if err := showConsole(ctx, l, hops); err != nil {
		return err
	}
	next(l, repo)
	fmt.Printf("demo: %s -> vm %s/%s Running in %.1fs, console ok\n", commit[:12], namespace, name, running.Seconds())
	return nil
}

func last(hops []lab.Hop) time.Duration {
	for _, h := range hops {
		if strings.HasPrefix(h.Name, "guest started") {
			return h.At
		}
	}
	return 0
}

// prepare gives the tenant its namespace and an empty repository that its Bundle follows; a VM of an earlier run is
// removed the way it came: by a commit.
func prepare(ctx context.Context, l *lab.Lab) (*lab.Repo, error) {
	if err := l.StartGitServer(ctx); err != nil {
		return nil, err
	}
	repo, err := lab.Clone(ctx, "vms", filepath.Join(l.State(), "vms"))
	if err != nil {
		return nil, err
	}
	say("Git repository %s, cloned to .cluster/vms", repo.URL)
	files := map[string][]byte{"README.md": []byte("# Our VMs\n"), "kustomization.yaml": kustomization()}
	if _, err := os.Stat(filepath.Join(repo.Dir, "hello.yaml")); err == nil {
		files["hello.yaml"] = nil
	}
	if _, err := repo.Commit(ctx, "Start without VMs", files); err != nil && !strings.Contains(err.Error(), "nothing to commit") {
		return nil, err
	}
	if _, err := l.Apply(ctx, tenant); err != nil {
		return nil, err
	}
	say("namespace, account and Bundle of the team applied (ci/demo/tenant.yaml)")
	return repo, lab.Until(ctx, 2*time.Minute, "the earlier VM to go", func(ctx context.Context) (bool, string, error) {
		vm := &v1.VirtualMachine{}
		err := l.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, vm)
		return apierrors.IsNotFound(err), string(vm.Status.PrintableStatus), client.IgnoreNotFound(err)
	})
}

func kustomization(resources ...string) []byte {
	return fmt.Appendf(nil, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: %s\nresources: [%s]\n",
		namespace, strings.Join(resources, ", "))
}

func commitVM(ctx context.Context, l *lab.Lab, repo *lab.Repo) (string, *lab.Hops, error) {
	vm, err := os.ReadFile(filepath.Join(l.Root, "examples", "vms", "hello.yaml"))
	if err != nil {
		return "", nil, err
	}
	commit, err := repo.Commit(ctx, "Add VM hello", map[string][]byte{"hello.yaml": vm, "kustomization.yaml": kustomization("hello.yaml")})
	if err != nil {
		return "", nil, err
	}
	say("pushed commit %s: Add VM hello", commit[:12])
	hops, err := l.FollowVM(ctx, namespace, name, commit, func(h lab.Hop) {
		fmt.Printf("           +%5.2fs %s\n", h.At.Seconds(), h.Name)
	})
	return commit, hops, err
}

func showConsole(ctx context.Context, l *lab.Lab, hops *lab.Hops) (err error) {
	console, err := l.Console(ctx, namespace, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, console.Close()) }()
	if err := console.Expect(ctx, login, 2*time.Minute); err != nil {
		return err
	}
	hops.Mark("login on the serial console")
	say("the guest's serial console (virtctl console -n %s %s):", namespace, name)
	lines := strings.Split(strings.ReplaceAll(console.Output(), "\r", ""), "\n")
	for _, line := range lines[max(0, len(lines)-8):] {
		fmt.Println("  | " + line)
	}
	return nil
}

func next(l *lab.Lab, repo *lab.Repo) {
	fmt.Printf(`
The cluster stays up. Try:
  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl get vm,vmi,pod -n %[3]s
  virtctl console -n %[3]s %[4]s          # log in as root, leave with Ctrl-]
  cd %[5]s && sed -i 's/runStrategy: Always/runStrategy: Halted/' hello.yaml && git commit -am 'Stop hello' && git push
  kubectl get bundle,vm -n %[3]s -w
  make down                            # take everything away

`, l.Kubeconfig(), filepath.Join(l.State(), "bin"), namespace, name, repo.Dir)
}
