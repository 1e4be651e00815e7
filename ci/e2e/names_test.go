//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names as long as Kubernetes allows run, and those that begin alike are not taken for one another. Sources:
// kubevirt/kubevirt#1222, #16853.
func TestLongNames(t *testing.T) {
	p := newPlace(t, "long-names")
	const long = "ledger-archive-node-of-the-northern-region-replica-of-2026-q34-second-copy-zone-"
	b, c := long+"b", long+strings.Repeat("c", 253-len(long))
	for _, name := range []string{b, c} {
		p.create(p.vm(name))
	}
	for _, name := range []string{b, c} {
		vmi := p.phase(name, v1.Running, 3*time.Minute)
		pods := &corev1.PodList{}
		p.must(theLab.Client.List(t.Context(), pods, client.InNamespace(p.ns), client.MatchingLabels{v1.CreatedByLabel: string(vmi.UID)}))
		if len(pods.Items) != 1 {
			t.Fatalf("%s has %d Pods", name, len(pods.Items))
		}
		pod := pods.Items[0]
		if errs := validation.IsDNS1123Label(pod.Spec.Hostname); len(errs) > 0 {
			t.Errorf("%s: host name %q: %v", name, pod.Spec.Hostname, errs)
		}
		for _, key := range []string{v1.VirtualMachineInstanceIDLabel, v1.DeprecatedVirtualMachineNameLabel} {
			p.must(theLab.Client.List(t.Context(), pods, client.InNamespace(p.ns), client.MatchingLabels{key: pod.Labels[key]}))
			if len(pods.Items) != 1 {
				t.Errorf("%s=%s selects %d Pods, want one", key, pod.Labels[key], len(pods.Items))
			}
		}
	}
	p.must(theLab.Client.Delete(t.Context(), p.vm(b)))
	p.gone(&v1.VirtualMachine{}, b, 90*time.Second)
	if vmi := p.phase(c, v1.Running, time.Second); vmi.DeletionTimestamp != nil {
		t.Errorf("deleting %s deletes %s", b, c)
	}
}
