//go:build e2e

// Package e2e proves on the dev cluster what only real parts can prove: kubelet, containerd, libvirt, QEMU, a guest and
// a Git server. It needs "make up" and the images loaded, and fails where they are missing.
package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/ci/lab"
)

var (
	theLab *lab.Lab

	//go:embed testdata/vm.yaml
	vmYAML []byte
	//go:embed testdata/tenant.yaml
	tenantYAML string
)

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	var err error
	if theLab, err = lab.Open(); err == nil {
		if err = theLab.Install(ctx); err == nil {
			err = theLab.StartGitServer(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := flux.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: stopping Flux:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// place is a namespace of one test, emptied of VMs at its end.
type place struct {
	t  *testing.T
	ns string
}

// newPlace makes a test's namespace. The test runs beside others: it may not touch what they stand on.
func newPlace(t *testing.T, name string) place {
	t.Helper()
	t.Parallel()
	return placeAlone(t, name)
}

// placeAlone makes the namespace of a test that runs with no other beside it: it restarts components, or counts what
// they do.
func placeAlone(t *testing.T, name string) place {
	t.Helper()
	p := place{t, "e2e-" + name}
	p.must(theLab.Namespace(t.Context(), p.ns))
	t.Cleanup(func() {
		if t.Failed() {
			p.describe()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if _, err := theLab.Kubectl(ctx, "delete", "namespace", p.ns, "--timeout=100s"); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p place) describe() {
	for _, args := range [][]string{
		{"get", "vm,vmi,pod,bundle", "-n", p.ns, "-o", "yaml"}, {"get", "events", "-n", p.ns},
	} {
		out, err := theLab.Kubectl(context.Background(), args...)
		p.t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// vm returns the test's VM under another name, changed by the given functions.
func (p place) vm(name string, change ...func(*v1.VirtualMachine)) *v1.VirtualMachine {
	p.t.Helper()
	vm := &v1.VirtualMachine{}
	p.must(yaml.UnmarshalStrict(vmYAML, vm))
	vm.Namespace, vm.Name = p.ns, name
	for _, c := range change {
		c(vm)
	}
	return vm
}

func (p place) create(o client.Object) {
	p.t.Helper()
	p.must(theLab.Client.Create(p.t.Context(), o))
}

func (p place) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: p.ns, Name: name}
}

// status waits until the VM's printableStatus is the wanted one.
func (p place) status(name string, want v1.VirtualMachinePrintableStatus, limit time.Duration) *v1.VirtualMachine {
	p.t.Helper()
	vm := &v1.VirtualMachine{}
	p.must(lab.Until(p.t.Context(), limit, fmt.Sprintf("VM %s to be %s", name, want), func(ctx context.Context) (bool, string, error) {
		*vm = v1.VirtualMachine{}
		err := theLab.Client.Get(ctx, p.key(name), vm)
		return vm.Status.PrintableStatus == want, string(vm.Status.PrintableStatus), err
	}))
	return vm
}

// phase waits until the VMI is in the wanted phase.
func (p place) phase(name string, want v1.VirtualMachineInstancePhase, limit time.Duration) *v1.VirtualMachineInstance {
	p.t.Helper()
	vmi := &v1.VirtualMachineInstance{}
	p.must(lab.Until(p.t.Context(), limit, fmt.Sprintf("VMI %s to be %s", name, want), func(ctx context.Context) (bool, string, error) {
		*vmi = v1.VirtualMachineInstance{}
		err := theLab.Client.Get(ctx, p.key(name), vmi)
		return vmi.Status.Phase == want, string(vmi.Status.Phase), err
	}))
	return vmi
}

func (p place) gone(o client.Object, name string, limit time.Duration) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), limit, name+" to be gone", func(ctx context.Context) (bool, string, error) {
		err := theLab.Client.Get(ctx, p.key(name), o)
		return apierrors.IsNotFound(err), fmt.Sprintf("%T %s", o, name), client.IgnoreNotFound(err)
	}))
}

// busy is how much longer than alone a guest may take to boot: it is emulated, beside another one.
const busy = 3

// login opens the console and waits for the prompt of a guest of that host name; limit is for a guest that boots alone.
func (p place) login(name string, limit time.Duration) *lab.Console {
	p.t.Helper()
	c, err := theLab.Console(p.t.Context(), p.ns, name)
	p.must(err)
	p.t.Cleanup(func() { _ = c.Close() })
	p.must(c.Expect(p.t.Context(), name+" login:", busy*limit))
	return c
}

// shell logs in as root and waits for its prompt.
func (p place) shell(name string) *lab.Console {
	p.t.Helper()
	c := p.login(name, 3*time.Minute)
	p.must(c.Send("root\n"))
	p.must(c.Expect(p.t.Context(), "# ", busy*20*time.Second))
	return c
}

// qemu returns the one QEMU of a VMI; none or two is a failure (design: at most one, ever).
func (p place) qemu(name string) lab.Process {
	p.t.Helper()
	found := lab.QEMU(p.ns + "_" + name)
	if len(found) != 1 {
		p.t.Fatalf("VMI %s has %d QEMU processes, want 1: %v", name, len(found), found)
	}
	return found[0]
}

func containsAll(s string, texts []string) bool {
	for _, t := range texts {
		if !strings.Contains(s, t) {
			return false
		}
	}
	return true
}
