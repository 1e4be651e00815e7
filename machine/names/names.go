// Package names derives every name that more than one component must agree on. A name is a pure function of the
// object it belongs to, so that a create that was repeated after a crash finds what it made.
package names

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// What an install is made of; source: contract of KubeVirt's operator.
const (
	Namespace = "kubevirt"

	Operator   = "virt-operator"
	Bundles    = "virt-bundles"
	API        = "virt-api"
	Controller = "virt-controller"
	Handler    = "virt-handler"
	Launcher   = "virt-launcher"

	CASecret     = "kubevirt-ca"
	CAConfigMap  = "kubevirt-ca"
	CABundleKey  = "ca-bundle"
	APICerts     = "kubevirt-virt-api-certs"
	OperatorCert = "kubevirt-operator-certs"

	// NodeAgentSigner is the signerName of the node agents' CertificateSigningRequests.
	NodeAgentSigner = "virtstack.io/node-agent"

	// Components is the annotation of a KubeVirt that names the Bundle, in its namespace, whose content is installed.
	Components = "virtstack.io/components"

	// Release is the label that says which release a CRD is of.
	Release = "virtstack.io/release"

	HandlerPort = 8186
	APIPort     = 8443
	WebhookPort = 8444
)

// Device plugin resources of a node.
const (
	KVMDevice   = "devices.kubevirt.io/kvm"
	TunDevice   = "devices.kubevirt.io/tun"
	VhostDevice = "devices.kubevirt.io/vhost-net"
	VsockDevice = "devices.kubevirt.io/vhost-vsock"
)

// MeshInject is the label of a Pod, and the annotation of a VMI, that asks for Istio's proxy; source: Istio's
// documentation.
const MeshInject = "sidecar.istio.io/inject"

// LauncherPod returns the name of the one launcher Pod of a VMI: virt-launcher-<vmi>-<tail>, at most 63 characters.
// The tail is hashed from the VMI's UID, so a VMI made again under the same name gets another Pod.
func LauncherPod(vmi string, uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	tail := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
	const room = 63 - len("virt-launcher-") - 1 - 8
	vmi = strings.ReplaceAll(vmi, ".", "-")
	if len(vmi) > room {
		vmi = strings.Trim(vmi[:room], "-")
	}
	return "virt-launcher-" + vmi + "-" + tail
}

// LabelValue returns name where it fits a label value (63 characters), else its first 54 characters, a dash and the
// first 8 hex digits of its SHA-1, as clients of KubeVirt compute it for the label vmi.kubevirt.io/id.
func LabelValue(name string) string {
	if len(name) <= 63 {
		return name
	}
	sum := sha1.Sum([]byte(name))
	return name[:54] + "-" + hex.EncodeToString(sum[:])[:8]
}

// PodVolume returns the name of a VMI volume in the launcher Pod: prefix-<volume>, hashed where a Pod volume name
// (a DNS label of at most 63 characters) can't hold it.
func PodVolume(prefix, volume string) string {
	name := prefix + "-" + volume
	if len(name) <= 63 && !strings.Contains(volume, ".") {
		return name
	}
	sum := sha256.Sum256([]byte(volume))
	clean := strings.ReplaceAll(name, ".", "-")
	return strings.Trim(clean[:min(len(clean), 50)], "-") + "-" + hex.EncodeToString(sum[:6])
}

// maxDomain is how long a domain's name may be, in bytes: libvirt makes file names of it, with an end of its own, and a
// file name has 255.
const maxDomain = 200

// Domain returns the name of a VMI's libvirt domain: <namespace>_<name>, its end hashed where that is over 200 bytes.
func Domain(namespace, name string) string {
	all := namespace + "_" + name
	if len(all) <= maxDomain {
		return all
	}
	sum := sha256.Sum256([]byte(all))
	return all[:maxDomain-13] + "-" + hex.EncodeToString(sum[:6])
}
