package agent_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"virtstack.io/virtstack/launcher/agent"
	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/driver/fake"
	"virtstack.io/virtstack/launcher/guest"
)

const xml = `<domain type="qemu"><name>n_web</name><os><type machine="q35">hvm</type></os><devices/></domain>`

var web = driver.AgentInfo{
	Hostname:   "web",
	OS:         driver.AgentOS{ID: "debian", PrettyName: "Debian GNU/Linux 13 (trixie)"},
	Interfaces: []driver.AgentInterface{{Name: "eth0", MAC: "02:00:5e:00:53:01", Addresses: []string{"10.0.2.2"}}},
}

// running starts a guest and those who ask its agent.
func running(t *testing.T) (*fake.Driver, *guest.Guest) {
	t.Helper()
	d := fake.Open()
	g := guest.New(d, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go g.Loop(ctx)
	go agent.Watch(ctx, g)
	if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
		t.Fatal(err)
	}
	return d, g
}

// after lets time pass and returns what is told of the agent then.
func after(g *guest.Guest, d time.Duration) *driver.AgentInfo {
	<-time.After(d) // of the bubble's time
	synctest.Wait()
	r, _ := g.Report()
	return r.Agent
}

func TestWhatAnAgentSaysIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := running(t)
		if got := after(g, time.Hour); got != nil {
			t.Fatalf("told of %+v, there is no agent", got)
		}
		d.Connect(func(driver.AgentCall) (driver.AgentInfo, error) { return web, nil })
		if got := after(g, time.Second); got == nil || !reflect.DeepEqual(*got, web) {
			t.Errorf("told of %+v, want %+v", got, web)
		}
		d.Connect(nil)
		if got := after(g, 10*time.Second); got == nil {
			t.Error("lost within ten seconds: a reboot takes as long")
		}
		if got := after(g, time.Minute); got != nil {
			t.Errorf("told of %+v, the agent is gone", got)
		}
	})
}

func TestAnAgentThatFailsIsLostAndFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := running(t)
		for _, tc := range []struct {
			err  error
			told bool
		}{{nil, true}, {errors.New("no answer"), false}, {nil, true}} {
			d.Connect(func(driver.AgentCall) (driver.AgentInfo, error) { return web, tc.err })
			if got := after(g, 2*time.Minute); (got != nil) != tc.told {
				t.Errorf("%v: told of %+v, want some: %t", tc.err, got, tc.told)
			}
		}
	})
}

func TestAGuestThatNeverRestsIsReportedAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := running(t)
		asked := 0
		d.Connect(func(driver.AgentCall) (driver.AgentInfo, error) {
			asked++
			return driver.AgentInfo{Hostname: fmt.Sprint("host-", asked)}, nil
		})
		reports, end := 0, time.After(time.Hour)
		for over := false; !over; {
			_, news := g.Report()
			select {
			case <-news:
				reports++
			case <-end:
				over = true
			}
		}
		if reports < 100 || reports > 3600/5+1 {
			t.Errorf("%d reports in an hour, want one in five seconds at most", reports)
		}
	})
}

// TestS12 is row S12 of the threats: a megabyte of an agent's inventions.
func TestS12HostileAnswersAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	hostile := driver.AgentInfo{
		Hostname: "a\x00b\nc\x1b[31m\xff" + long, Timezone: long,
		OS: driver.AgentOS{ID: long, Name: long, PrettyName: long, Version: long, VersionID: long, KernelRelease: long, KernelVersion: long, Machine: long},
	}
	var many []string
	for j := range 100 {
		many = append(many, long, fmt.Sprintf("10.0.0.%d", j), "fe80::1%"+long)
	}
	for i := range 10_000 {
		one := driver.AgentInterface{Name: long, MAC: fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8&0xff, i&0xff), Addresses: many}
		hostile.Interfaces = append(hostile.Interfaces, one, driver.AgentInterface{Name: "eth0", MAC: long})
	}
	said := agent.Bound(hostile)
	if len(said.Interfaces) != agent.MaxInterfaces || len(said.Interfaces[0].Addresses) != agent.MaxAddresses {
		t.Errorf("%d interfaces with %d addresses", len(said.Interfaces), len(said.Interfaces[0].Addresses))
	}
	if !strings.HasPrefix(said.Hostname, "abc[31mxxx") || !utf8.ValidString(said.Hostname) {
		t.Errorf("hostname %.20q", said.Hostname)
	}
	if n := len(fmt.Sprint(said)); n > 64<<10 {
		t.Errorf("%d bytes are told", n)
	}
	if again := agent.Bound(said); !reflect.DeepEqual(again, said) {
		t.Error("bounding what is bounded changes it")
	}
}

func FuzzBound(f *testing.F) {
	f.Add("web", "02:00:5e:00:53:01", "10.0.2.2")
	f.Add("\xff\x00", "02-00-5e-00-53-01-02-03", "fe80::1%eth0")
	f.Fuzz(func(t *testing.T, name, mac, address string) {
		said := agent.Bound(driver.AgentInfo{Hostname: name, Interfaces: []driver.AgentInterface{{Name: name, MAC: mac, Addresses: []string{address}}}})
		if !utf8.ValidString(said.Hostname) || len(said.Hostname) > agent.MaxText {
			t.Errorf("hostname %q", said.Hostname)
		}
		for _, i := range said.Interfaces {
			if len(i.MAC) != 17 {
				t.Errorf("MAC %q", i.MAC)
			}
		}
	})
}
