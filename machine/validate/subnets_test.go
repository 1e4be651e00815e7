package validate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

func TestSubnetsBehindMasquerade(t *testing.T) {
	for text, pod := range map[string]*v1.PodNetwork{
		"":                               nil,
		`pod.vmNetworkCIDR: Invalid`:     {VMNetworkCIDR: "10.0.0.0/31"},
		`pod.vmIPv6NetworkCIDR: Invalid`: {VMNetworkCIDR: "10.0.0.0/24", VMIPv6NetworkCIDR: "10.0.0.0/24"},
	} {
		got := subnets(field.NewPath("pod"), pod)
		if (text == "") != (len(got) == 0) || len(got) > 0 && !strings.Contains(got[0].Error(), text) {
			t.Errorf("got %v, want %q", got, text)
		}
	}
}
