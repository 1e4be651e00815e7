package link

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// Seen is what a launcher last said. It may be thrown away at any time: a new connection tells it again.
type Seen struct {
	// State is the last one; nil before the first. It is shared: don't change it.
	State *guestv1.State
	// Since is when the launcher was first not heard of, or zero while it is connected; Err says why.
	Since time.Time
	Err   error
}

// Launchers listens to the launchers of this node, each over one link.
type Launchers struct {
	// Dial connects to the launcher in a Pod, which it proves to be that Pod's.
	Dial func(ctx context.Context, pod types.UID) (net.Conn, error)
	// Changed is called after a launcher said something new, or was lost.
	Changed func(vmi types.NamespacedName)

	mu   sync.Mutex
	open map[types.UID]*launcher
}

type launcher struct {
	vmi  types.NamespacedName
	link *Link
	stop context.CancelFunc

	mu   sync.Mutex
	seen Seen
}

// Keep makes pods the ones that are listened to for a VMI: it opens what is missing and closes the rest.
func (l *Launchers) Keep(vmi types.NamespacedName, pods ...types.UID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted := map[types.UID]bool{}
	for _, pod := range pods {
		wanted[pod] = true
		if l.open[pod] != nil {
			continue
		}
		if err := l.listen(vmi, pod); err != nil {
			return err
		}
	}
	for pod, la := range l.open {
		if la.vmi == vmi && !wanted[pod] {
			la.close()
			delete(l.open, pod)
		}
	}
	return nil
}

// Close hangs up on every launcher.
func (l *Launchers) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for pod, la := range l.open {
		la.close()
		delete(l.open, pod)
	}
}

// Link returns the link to the launcher of a Pod and what it last said; nil where it isn't kept.
func (l *Launchers) Link(pod types.UID) (*Link, Seen) {
	l.mu.Lock()
	la := l.open[pod]
	l.mu.Unlock()
	if la == nil {
		return nil, Seen{}
	}
	la.mu.Lock()
	defer la.mu.Unlock()
	return la.link, la.seen
}

func (l *Launchers) listen(vmi types.NamespacedName, pod types.UID) error {
	link, err := Open(func(ctx context.Context) (net.Conn, error) { return l.Dial(ctx, pod) })
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	la := &launcher{vmi: vmi, link: link, stop: stop, seen: Seen{Since: time.Now()}}
	if l.open == nil {
		l.open = map[types.UID]*launcher{}
	}
	l.open[pod] = la
	go la.listen(ctx, func() { l.Changed(vmi) })
	return nil
}

// listen watches until ctx ends. A launcher's socket is there a moment after its container is, so it is asked anew
// soon at first and every two seconds later.
func (la *launcher) listen(ctx context.Context, changed func()) {
	retry := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 10, Cap: 2 * time.Second}
	_ = retry.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := la.link.watch(ctx, func(s *guestv1.State) {
			if la.told(s) {
				changed()
			}
		})
		if ctx.Err() == nil && la.lost(err) {
			changed()
		}
		return false, nil
	})
}

func (la *launcher) told(s *guestv1.State) (news bool) {
	la.mu.Lock()
	defer la.mu.Unlock()
	news = la.seen.State == nil || !la.seen.Since.IsZero() || !proto.Equal(la.seen.State, s)
	la.seen = Seen{State: s}
	return news
}

func (la *launcher) lost(err error) (news bool) {
	la.mu.Lock()
	defer la.mu.Unlock()
	la.seen.Err = err
	if !la.seen.Since.IsZero() {
		return false
	}
	la.seen.Since = time.Now()
	return true
}

func (la *launcher) close() {
	la.stop()
	la.link.Close()
}
