package network

import (
	"net"
	"os"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
)

// meshed is the layout of a VMI that asks for Istio's proxy.
func meshed(t *testing.T, ports ...v1.Port) []Port {
	t.Helper()
	m := vmi(masqueraded("default", ports...), &v1.PodNetwork{})
	m.Annotations = map[string]string{"sidecar.istio.io/inject": "true"}
	l, err := Layout(m)
	must(t, err)
	return l
}

// In a Pod with Istio's proxy that one hears what comes from outside, but ssh; what it sends on reaches the guest, its
// own ports stay its own.
func TestTheProxyIsBetweenClientAndGuest(t *testing.T) {
	client, pod, guest := cluster(t, meshed(t))
	calls{
		"from outside":                {client, podIP + ":80", pod, podIP + ":80", clientIP},
		"ssh":                         {client, podIP + ":22", guest, guestIP + ":22", clientIP},
		"on to the Pod's address":     {pod, podIP + ":81", guest, guestIP + ":81", podIP},
		"on to the loopback address":  {pod, "127.0.0.1:82", guest, guestIP + ":82", "10.0.2.1"},
		"to the proxy's own port":     {pod, "127.0.0.1:15000", pod, "127.0.0.1:15000", "127.0.0.1"},
		"out of the guest":            {guest, clientIP + ":83", client, clientIP + ":83", podIP},
		"from outside, IPv6":          {client, "[" + podIP6 + "]:84", pod, "[" + podIP6 + "]:84", clientIP6},
		"to a name server of the Pod": {pod, podIP + ":15053", pod, podIP + ":15053", podIP},
	}.check(t, "")
}

// The proxy's connections come from an address that the guest could not answer to.
func TestTheProxysAddressIsHidden(t *testing.T) {
	_, pod, guest := cluster(t, meshed(t))
	var l net.Listener
	must(t, onThread(guest, func() (err error) {
		l, err = net.Listen("tcp", guestIP+":80")
		return err
	}))
	defer l.Close()
	peers := make(chan string, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			peers <- c.RemoteAddr().(*net.TCPAddr).IP.String()
			c.Close()
		}
	}()
	must(t, onThread(pod, func() error {
		d := net.Dialer{Timeout: 4 * time.Second, LocalAddr: &net.TCPAddr{IP: proxySource.AsSlice()}}
		c, err := d.Dial("tcp", podIP+":80")
		if err == nil {
			c.Close()
		}
		return err
	}))
	if got := <-peers; got != "10.0.2.1" {
		t.Errorf("the guest saw %s, want its gateway", got)
	}
}

// Ports that are listed reach the guest by the proxy alone, ssh only if it is among them.
func TestListedPortsInAMesh(t *testing.T) {
	client, pod, guest := cluster(t, meshed(t, v1.Port{Port: 80}))
	for name, tc := range map[string]struct {
		from *os.File
		dial string
		want bool
	}{
		"from outside":         {client, podIP + ":80", false},
		"ssh, which isn't":     {client, podIP + ":22", false},
		"by the proxy":         {pod, podIP + ":80", true},
		"by the proxy, 81":     {pod, podIP + ":81", false},
		"by the proxy's local": {pod, "127.0.0.1:80", true},
	} {
		_, port, _ := net.SplitHostPort(tc.dial)
		if _, err := call(t, tc.from, tc.dial, guest, guestIP+":"+port); (err == nil) != tc.want {
			t.Errorf("%s: reached is %t, want %t: %v", name, err == nil, tc.want, err)
		}
	}
}
