//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"virtstack.io/virtstack/ci/lab"
)

// The launcher Pod passes the restricted Pod Security Standard, and its processes are as confined as it says.
func TestLauncherIsConfined(t *testing.T) {
	p := newPlace(t, "confined")
	_, err := theLab.Kubectl(t.Context(), "label", "namespace", p.ns, "pod-security.kubernetes.io/enforce=restricted")
	p.must(err)
	p.create(p.vm("web"))
	p.phase("web", v1.Running, 2*time.Minute)

	all := lab.PodProcesses(p.ns + "_web")
	if len(all) < 3 {
		t.Errorf("launcher Pod has processes %v, want launcher, libvirtd and QEMU", all)
	}
	for _, proc := range all {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", proc.PID))
		p.must(err)
		for _, want := range []string{"\nUid:\t107\t107\t107\t107\n", "\nCapEff:\t0000000000000000\n", "\nCapBnd:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n"} {
			if !strings.Contains(string(status), want) {
				t.Errorf("process %d: want %q in its status:\n%s", proc.PID, strings.TrimSpace(want), status)
			}
		}
		root := fmt.Sprintf("/proc/%d/root", proc.PID)
		for _, shell := range []string{"/bin/sh", "/bin/bash", "/bin/busybox", "/usr/bin/busybox"} {
			if _, err := os.Lstat(root + shell); err == nil {
				t.Errorf("the launcher image has a shell: %s", shell)
			}
		}
		if _, err := os.Stat(root + "/var/run/secrets/kubernetes.io"); err == nil {
			t.Error("the launcher Pod has a service account token")
		}
	}
}

// What a launcher Pod asks for is what it uses, and a margin (docs/decisions/0005-memory-overhead.md).
func TestLauncherPodAsksForWhatItUses(t *testing.T) {
	p := placeAlone(t, "memory")
	p.create(p.vm("web"))
	p.phase("web", v1.Running, 2*time.Minute)
	p.login("web", time.Minute)
	pods := &corev1.PodList{}
	p.must(theLab.Client.List(t.Context(), pods, client.InNamespace(p.ns)))
	if len(pods.Items) != 1 {
		t.Fatalf("the VM has %d Pods, want 1", len(pods.Items))
	}
	asked := float64(pods.Items[0].Spec.Containers[0].Resources.Requests.Memory().Value()) / (1 << 20)
	used := 0.0
	for _, proc := range lab.PodProcesses(p.ns + "_web") {
		used += proc.Memory().PSS
	}
	if used == 0 || used > asked || asked > used+80 {
		t.Errorf("the Pod asks for %.0f MiB and its processes use %.0f MiB: want a margin of 0 to 80", asked, used)
	}
}

// Only virt-controller makes launcher Pods: nobody squats on a derived name or poses as a VMI's Pod.
func TestLauncherPodsAreNotForged(t *testing.T) {
	p := newPlace(t, "forged")
	pod := &corev1.Pod{ObjectMeta: objectMeta(p.ns, "virt-launcher-web-aaaaaaaa"),
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "compute", Image: "localhost/guest:dev"}}}}
	user := theLab.As(t, "system:serviceaccount:"+p.ns+":default", "system:serviceaccounts")
	_, err := theLab.Kubectl(t.Context(), "create", "rolebinding", "edit", "-n", p.ns, "--clusterrole=edit", "--serviceaccount="+p.ns+":default")
	p.must(err)
	if err := user.Create(t.Context(), pod, &client.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "virt-launcher") {
		t.Errorf("creating Pod %s as a user: %v, want a refusal", pod.Name, err)
	}
}
