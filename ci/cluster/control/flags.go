package control

import (
	"path/filepath"

	"virtstack.io/virtstack/ci/cluster/layout"
)

// arguments returns each program's flags. File names are relative to the PKI directory, in which they run.
func arguments(d layout.Dir) map[string][]string {
	return map[string][]string{
		"etcd":           etcd(d),
		"kube-apiserver": apiServer(d),
		"kube-controller-manager": {
			"--kubeconfig=controller-manager.kubeconfig", "--leader-elect=false", "--bind-address=127.0.0.1",
			"--use-service-account-credentials", "--service-account-private-key-file=sa.key", "--root-ca-file=ca.crt",
			"--cluster-signing-cert-file=ca.crt", "--cluster-signing-key-file=ca.key",
			"--flex-volume-plugin-dir=" + filepath.Join(d.Run(), "flex"), // else it makes one below /usr/libexec
			"--node-monitor-grace-period=40s",
		},
		"kube-scheduler": {"--kubeconfig=scheduler.kubeconfig", "--leader-elect=false", "--bind-address=127.0.0.1"},
	}
}

func etcd(d layout.Dir) []string {
	return []string{
		"--data-dir=" + d.Etcd(), "--unsafe-no-fsync", // a power failure of this machine may cost the cluster
		"--listen-client-urls=" + layout.EtcdURL, "--advertise-client-urls=" + layout.EtcdURL,
		"--listen-peer-urls=" + layout.EtcdPeerURL,
	}
}

func apiServer(d layout.Dir) []string {
	return []string{
		"--etcd-servers=" + layout.EtcdURL,
		"--bind-address=" + layout.HostIP, "--secure-port=6443",
		"--service-cluster-ip-range=" + layout.ServiceCIDR,
		"--allow-privileged",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--tls-cert-file=apiserver.crt", "--tls-private-key-file=apiserver.key", "--client-ca-file=ca.crt",
		"--kubelet-preferred-address-types=InternalIP", // nobody resolves the nodes' names
		"--kubelet-client-certificate=apiserver-kubelet-client.crt", "--kubelet-client-key=apiserver-kubelet-client.key",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=sa.pub", "--service-account-signing-key-file=sa.key",
		"--requestheader-client-ca-file=front-proxy-ca.crt", "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=front-proxy-client.crt", "--proxy-client-key-file=front-proxy-client.key",
		"--enable-aggregator-routing", // webhooks and APIServices reach Pods without a kube-proxy on the host
		"--audit-policy-file=" + auditPolicy(d), "--audit-log-path=" + d.AuditLog(),
		"--audit-log-maxsize=" + auditMegabytes, "--audit-log-maxbackup=1",
	}
}
