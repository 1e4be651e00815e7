package loop_test

import (
	"testing"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/kube/loop"
)

func TestRequests(t *testing.T) {
	list := make([]v1.VirtualMachine, 2)
	list[0].Namespace, list[0].Name = "one", "web"
	list[1].Namespace, list[1].Name = "two", "db"
	got := loop.Requests(list)
	if len(got) != 2 || got[0].String() != "one/web" || got[1].String() != "two/db" {
		t.Errorf("got %v, want rounds for one/web and two/db", got)
	}
	if none := loop.Requests[v1.VirtualMachine](nil); none != nil {
		t.Errorf("got %v, want none", none)
	}
}
