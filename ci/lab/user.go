package lab

import (
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// As returns a client that acts as another user.
func (l *Lab) As(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	c, err := client.New(l.configAs(user, groups), client.Options{Scheme: l.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// RawAs returns a client for paths, such as subresources, that acts as another user.
func (l *Lab) RawAs(t testing.TB, user string, groups ...string) rest.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(l.configAs(user, groups))
	if err != nil {
		t.Fatal(err)
	}
	return c.RESTClient()
}

func (l *Lab) configAs(user string, groups []string) *rest.Config {
	config := rest.CopyConfig(l.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}
