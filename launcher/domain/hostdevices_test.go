package domain_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"virtstack.io/virtstack/launcher/domain"
)

func TestWhatDevicePluginsTell(t *testing.T) {
	got := domain.ParseAssigned([]string{
		"PATH=/usr/bin", "PCI_RESOURCE_A=0000:81:00.0, 0000:81:00.1,", "MDEV_PCI_RESOURCE_A=u1", "USB_RESOURCE_B=3:12",
		"PCI_RESOURCE_C=", "NOT_PCI_RESOURCE_D=0000:81:00.2", "PCI_RESOURCE_E",
	})
	want := map[string]domain.Assigned{
		"A": {PCI: []string{"0000:81:00.0", "0000:81:00.1"}, MDEV: []string{"u1"}}, "B": {USB: []string{"3:12"}}, "C": {}, "E": {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("assigned (-want +got):\n%s", diff)
	}
}
