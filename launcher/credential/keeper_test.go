package credential_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"virtstack.io/virtstack/launcher/credential"
	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/driver/fake"
	"virtstack.io/virtstack/launcher/guest"
)

const xml = `<domain type="qemu"><name>n_web</name><os><type machine="q35">hvm</type></os><devices/></domain>`

// kept is a running guest, and the Secrets that somebody keeps it by.
type kept struct {
	*fake.Driver
	guest   *guest.Guest
	secrets credential.Secrets

	mu    sync.Mutex
	asked []driver.AgentCall
	fail  error
}

// fails makes the agent fail from now on; nil: it doesn't any more.
func (k *kept) fails(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = err
}

// taken returns what was asked, and forgets it.
func (k *kept) taken() []driver.AgentCall {
	k.mu.Lock()
	defer k.mu.Unlock()
	asked := k.asked
	k.asked = nil
	return asked
}

// keep starts them; wants are the credentials.
func keep(t *testing.T, wants string) *kept {
	t.Helper()
	k := &kept{Driver: fake.Open(), secrets: filled(t)}
	k.guest = guest.New(k.Driver, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	keeper := credential.NewKeeper(k.secrets)
	go k.guest.Loop(ctx)
	go keeper.Keep(ctx, k.guest)
	keeper.Want(wanted(t, wants))
	if err := k.guest.SyncVMI(t.Context(), xml, driver.Running); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kept) connect() {
	k.Connect(func(c driver.AgentCall) (driver.AgentInfo, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.asked = append(k.asked, c)
		return driver.AgentInfo{}, k.fail
	})
}

// after lets time pass and returns what was asked meanwhile, and what is told of it.
func (k *kept) after(d time.Duration) ([]driver.AgentCall, *guest.Credentials) {
	k.taken()
	<-time.After(d) // of the bubble's time
	synctest.Wait()
	r, _ := k.guest.Report()
	return k.taken(), r.Credentials
}

func TestAGuestGetsItsCredentialsWhenItsAgentComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, keysByAgent+passwordsByAgent)
		if asked, said := k.after(time.Hour); len(asked) > 0 || said != nil {
			t.Errorf("asked %v, said %v without an agent", asked, said)
		}
		for range 2 { // the second time as after a reboot
			k.connect()
			if asked, said := k.after(time.Second); len(asked) != 4 || said == nil || said.Problem != "" {
				t.Errorf("asked %v, said %v", asked, said)
			}
			if asked, _ := k.after(time.Hour); len(asked) > 0 {
				t.Errorf("asked %v again", asked)
			}
			k.Connect(nil)
			k.after(time.Second)
		}
	})
}

func TestASecretThatChangesReachesTheGuest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, keysByAgent)
		k.connect()
		k.after(time.Minute)
		publish(t, k.secrets, "mine", map[string]string{"k": "ssh-ed25519 NEW n"})
		asked, said := k.after(time.Minute)
		want := []driver.AgentCall{driver.SetKeys{User: "ops", Keys: []string{"ssh-ed25519 AAA a", "ssh-rsa BBB b", "ssh-ed25519 NEW n"}}}
		if d := cmp.Diff(want, asked); d != "" || said.Problem != "" {
			t.Errorf("%v (-want +got):\n%s", said, d)
		}
	})
}

// An agent that fails is asked again at a pace, and what is told holds no secret.
func TestAnAgentThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, passwordsByAgent)
		k.fails(errors.New("no such user\n"))
		k.connect()
		asked, said := k.after(time.Minute)
		if len(asked) < 4 || len(asked) > 16 {
			t.Errorf("asked %d times in a minute", len(asked))
		}
		if said == nil || !strings.Contains(said.Problem, `user "ops": asking the agent: no such user`) || strings.Contains(said.Problem, "kept") {
			t.Errorf("said %+v", said)
		}
		k.fails(nil)
		if _, said := k.after(time.Minute); said.Problem != "" {
			t.Errorf("said %+v after it gave in", said)
		}
	})
}

func TestNothingIsAskedOfAGuestWithoutCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, seeded)
		k.connect()
		if asked, said := k.after(time.Hour); len(asked) > 0 || said != nil {
			t.Errorf("asked %v, said %v", asked, said)
		}
	})
}
