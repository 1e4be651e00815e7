package fake_test

import (
	"testing"

	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/driver/drivertest"
	"virtstack.io/virtstack/launcher/driver/fake"
)

func TestFake(t *testing.T) {
	drivertest.Run(t, func(*testing.T) drivertest.Driver {
		d := fake.Open()
		return drivertest.Driver{
			Driver: d, KillDaemon: d.Die, KillGuest: func() { d.End(driver.Crashed) },
			Share: func(_ *testing.T, dir string) string { return dir + "/fs.sock" },
		}
	})
}
