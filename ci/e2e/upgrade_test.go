//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/ci/lab"
)

// A platform team's repository is taken to a release two minor versions later by a commit, to one whose images don't
// exist, and back by reverting both. The guests of either release live through it all, by pid and start time of their
// QEMU, and answer on their consoles; whoever makes machines meanwhile is never refused.
func TestUpgradeAndRollback(t *testing.T) {
	p := placeAlone(t, "upgrade")
	p.must(theLab.Next(t.Context()))
	u := &upgrade{place: p}
	u.begin()
	p.create(p.vm("before"))
	p.phase("before", v1.Running, 2*time.Minute)
	c := p.shell("before")
	p.must(c.Send("echo kept > /tmp/mark\n"))
	before := p.qemu("before")
	users := p.users()

	u.commit("upgrade", true)
	u.sync()
	u.version(lab.NextVersion)
	u.usable("before", before)
	p.create(p.vm("after"))
	p.phase("after", v1.Running, 2*time.Minute)
	p.shell("after")
	after := p.qemu("after")

	t.Run("a tag that doesn't exist halts", func(t *testing.T) { u.halts() })
	u.usable("before", before)

	u.commit("revert", false)
	u.sync()
	u.version("v0.1.0")
	u.usable("before", before)
	u.usable("after", after)
	for _, refusal := range users() {
		t.Errorf("a user was refused: %s", refusal)
	}
}

// upgrade is the repository that the install comes from, and who applies it.
type upgrade struct {
	place
	repo *lab.Repo
}

func (u *upgrade) begin() {
	u.t.Helper()
	var err error
	u.repo, err = lab.Clone(u.t.Context(), fmt.Sprintf("release-%d", time.Now().Unix()), filepath.Join(u.t.TempDir(), "repo"))
	u.must(err)
	u.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
		defer cancel()
		if err := theLab.Install(ctx); err != nil {
			u.t.Errorf("installing this version again: %v", err)
		}
	})
	u.commit("install", false)
}

func (u *upgrade) commit(message string, later bool) {
	u.t.Helper()
	files, err := theLab.Release(later)
	u.must(err)
	_, err = u.repo.Commit(u.t.Context(), message, files)
	u.must(err)
}

// sync applies the commit, as a Git tool does, and waits until it is what runs.
func (u *upgrade) sync() {
	u.t.Helper()
	_, err := theLab.Kubectl(u.t.Context(), "apply", "--server-side", "-k", filepath.Join(u.repo.Dir, "release"))
	u.must(err)
	u.must(theLab.Available(u.t.Context(), 5*time.Minute))
}

func (u *upgrade) version(want string) {
	u.t.Helper()
	kv := &v1.KubeVirt{}
	u.must(theLab.Client.Get(u.t.Context(), client.ObjectKey{Namespace: "kubevirt", Name: "kubevirt"}, kv))
	if got := kv.Status.ObservedKubeVirtVersion; got != want {
		u.t.Errorf("version %s runs, want %s", got, want)
	}
}

// usable pauses a guest, lets it go on and asks it for what it was told before; its QEMU must be the one it was.
func (u *upgrade) usable(name string, qemu lab.Process) {
	u.t.Helper()
	for _, verb := range []string{"pause", "unpause"} {
		_, err := theLab.Run(u.t.Context(), "virtctl", verb, "vmi", name, "-n", u.ns)
		u.must(err)
	}
	c, err := theLab.Console(u.t.Context(), u.ns, name)
	u.must(err)
	defer c.Close()
	u.must(c.Send("echo answers $((40+2))\n"))
	u.must(c.Expect(u.t.Context(), "answers 42", busy*20*time.Second))
	if now := u.qemu(name); now != qemu {
		u.t.Errorf("QEMU of %s was %+v, is %+v", name, qemu, now)
	}
}

// halts commits a tag that no image has and takes it back.
func (u *upgrade) halts() {
	u.t.Helper()
	good, err := theLab.Release(true)
	u.must(err)
	configuration := string(good["overlays/dev/kubevirt.yaml"])
	bad := strings.Replace(configuration, "spec:\n", "spec:\n  imageTag: missing\n", 1)
	apply := func(message, content string) {
		_, err := u.repo.Commit(u.t.Context(), message, map[string][]byte{"overlays/dev/kubevirt.yaml": []byte(content)})
		u.must(err)
		_, err = theLab.Kubectl(u.t.Context(), "apply", "--server-side", "-f", filepath.Join(u.repo.Dir, "overlays/dev/kubevirt.yaml"))
		u.must(err)
	}
	apply("a tag that doesn't exist", bad)
	const said = `jsonpath={.status.conditions[?(@.type=="Synchronized")].message}`
	u.must(lab.Until(u.t.Context(), 3*time.Minute, "the roll-out to halt", func(ctx context.Context) (bool, string, error) {
		out, err := theLab.Kubectl(ctx, "-n", "kubevirt", "get", "kubevirt", "kubevirt", "-o", said)
		return containsAll(out, []string{"virt-handler", "Pod kubevirt/virt-handler-", ":missing", "ImagePullBackOff"}), out, err
	}))
	out, err := theLab.Kubectl(u.t.Context(), "-n", "kubevirt", "get", "deployment", "virt-api", "virt-controller", "-o", "jsonpath={.items[*].spec.template.spec.containers[*].image}")
	u.must(err)
	if strings.Contains(out, "missing") {
		u.t.Errorf("after a step had failed the next was taken: %s", out)
	}
	apply("revert", configuration)
	u.must(theLab.Available(u.t.Context(), 3*time.Minute))
}

const editor = `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubevirt.io:edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}]
`

// users makes machines and asks for verbs, as somebody with the role edit, until the returned function is called: it
// returns what was refused.
func (p place) users() (stop func() []string) {
	p.t.Helper()
	_, err := theLab.Apply(p.t.Context(), fmt.Sprintf(editor, p.ns))
	p.must(err)
	user, raw := theLab.As(p.t, "editor"), theLab.RawAs(p.t, "editor")
	expand := "/apis/subresources.kubevirt.io/v1/namespaces/" + p.ns + "/virtualmachines/before/expand-spec"
	var refused []string
	asked := 0
	ask := func(ctx context.Context) (bool, error) {
		asked++
		err := user.Create(ctx, p.vm(fmt.Sprintf("probe-%d", asked), halted), client.DryRunAll)
		if err == nil {
			_, err = raw.Get().AbsPath(expand).DoRaw(ctx)
		}
		if err != nil && ctx.Err() == nil {
			refused = append(refused, fmt.Sprintf("%s, request %d: %v", time.Now().Format(time.TimeOnly), asked, err))
		}
		return false, nil
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, ask) }) // it ends by being cancelled
	return func() []string {
		cancel()
		done.Wait()
		p.t.Logf("%d machines were made and expanded", asked)
		if asked < 100 {
			p.t.Errorf("only %d requests in all that time", asked)
		}
		return refused
	}
}
