package lab

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// As returns a client that acts as another user.
func (l *Lab) As(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(l.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{Scheme: l.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
