//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

// blockClaim makes a claim of a device of the node, and the volume that is behind it.
func (p place) blockClaim(name string, bytes int64) {
	p.t.Helper()
	loop, err := theLab.Loop("e2e-"+name+".img", bytes)
	p.must(err)
	p.t.Cleanup(func() {
		var errs []error
		for _, what := range [][]string{{"vm", "--all"}, {"pvc", name}, {"pv", p.ns + "-" + name}} { // in this order
			_, err := theLab.Kubectl(context.Background(), append([]string{"delete", "-n", p.ns, "--timeout=60s"}, what...)...)
			errs = append(errs, err)
		}
		if err := errors.Join(append(errs, loop.Detach())...); err != nil {
			p.t.Error(err)
		}
	})
	block, class, size := k8sv1.PersistentVolumeBlock, "", k8sv1.ResourceList{k8sv1.ResourceStorage: quantity("64Mi")}
	node := k8sv1.NodeSelectorRequirement{Key: "kubernetes.io/hostname", Operator: k8sv1.NodeSelectorOpIn, Values: []string{"node1"}}
	p.create(&k8sv1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: p.ns + "-" + name}, Spec: k8sv1.PersistentVolumeSpec{
		Capacity: size, VolumeMode: &block, AccessModes: []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadWriteOnce},
		PersistentVolumeSource: k8sv1.PersistentVolumeSource{Local: &k8sv1.LocalVolumeSource{Path: loop.Device}},
		ClaimRef:               &k8sv1.ObjectReference{Namespace: p.ns, Name: name},
		NodeAffinity: &k8sv1.VolumeNodeAffinity{Required: &k8sv1.NodeSelector{
			NodeSelectorTerms: []k8sv1.NodeSelectorTerm{{MatchExpressions: []k8sv1.NodeSelectorRequirement{node}}},
		}},
	}})
	p.create(&k8sv1.PersistentVolumeClaim{ObjectMeta: objectMeta(p.ns, name), Spec: k8sv1.PersistentVolumeClaimSpec{
		StorageClassName: &class, VolumeName: p.ns + "-" + name, VolumeMode: &block,
		AccessModes: []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadWriteOnce}, Resources: k8sv1.VolumeResourceRequirements{Requests: size},
	}})
}

func throwaway(name string) v1.VolumeSource {
	return v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{
		PersistentVolumeClaim: &k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
}

// A device is the guest's whole disk; what is written to it stays, what is written beside a claim that is only read
// goes. A DataVolume is its claim, whether or not the cluster knows DataVolumes.
func TestDevicesDataVolumesAndThrowaways(t *testing.T) {
	p := newPlace(t, "claims")
	p.blockClaim("raw", 64<<20)
	p.create(p.vm("maker", with("raw", claimed("raw")), with("imported", v1.VolumeSource{DataVolume: &v1.DataVolumeSource{Name: "imported"}})))
	p.unsynchronized("maker", "FailedPvcNotFound", "spec.volumes[2].dataVolume.name", p.ns+"/imported")
	p.claim("imported", "64Mi")
	p.phase("maker", v1.Running, 2*time.Minute)
	c := p.shell("maker")
	p.asked(c, `echo "sectors:$(cat /sys/block/vdb/size)"`, "sectors:131072")
	p.asked(c, `for d in vdb vdc; do echo base-of-$d | dd of=/dev/$d conv=sync,fsync; done; echo writ''ten`, "written")
	p.must(theLab.Client.Delete(t.Context(), p.vm("maker")))
	p.gone(&v1.VirtualMachine{}, "maker", time.Minute)

	p.create(p.vm("user", with("raw", throwaway("raw")), with("imported", throwaway("imported"))))
	first := p.phase("user", v1.Running, 2*time.Minute)
	c = p.shell("user")
	for _, disk := range []string{"vdb", "vdc"} {
		p.asked(c, "head -c 11 /dev/"+disk+"; echo", "base-of-"+disk)
		p.asked(c, "echo changed-"+disk+" | dd of=/dev/"+disk+" conv=sync,fsync; head -c 11 /dev/"+disk+" | rev; echo", reversed("changed-"+disk))
	}
	_, err := theLab.Run(t.Context(), "virtctl", "restart", "-n", p.ns, "user")
	p.must(err)
	p.another("user", first.UID, v1.Running, 3*time.Minute)
	c = p.shell("user")
	for _, disk := range []string{"vdb", "vdc"} {
		p.asked(c, "head -c 11 /dev/"+disk+"; echo", "base-of-"+disk)
	}
	p.must(theLab.Client.Delete(t.Context(), p.vm("user")))
	p.gone(&v1.VirtualMachine{}, "user", time.Minute)
}

func reversed(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}
