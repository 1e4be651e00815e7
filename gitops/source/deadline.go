package source

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/net/proxy"
)

// deadlineScheme is that of a proxy that is none: go-git's ssh knows no context, and a server that says nothing would
// hold a worker for ever. A connection that is dialled through it ends at the time that the proxy's URL says.
const deadlineScheme = "virtstack-deadline"

func init() {
	proxy.RegisterDialerType(deadlineScheme, func(u *url.URL, _ proxy.Dialer) (proxy.Dialer, error) {
		nanos, err := strconv.ParseInt(u.Host, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the deadline %q: %w", u.Host, err)
		}
		return until{time.Unix(0, nanos)}, nil
	})
}

// until is what connections last.
type until struct{ end time.Time }

// Dial is DialContext without a context.
func (u until) Dial(network, address string) (net.Conn, error) {
	return u.DialContext(context.Background(), network, address)
}

// DialContext dials, and sets the connection's deadline.
func (u until) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Deadline: u.end}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(u.end)
}

// deadline returns the proxy options for connections that end when the context does.
func deadline(ctx context.Context) transport.ProxyOptions {
	end, ok := ctx.Deadline()
	if !ok {
		return transport.ProxyOptions{}
	}
	return transport.ProxyOptions{URL: fmt.Sprintf("%s://%d", deadlineScheme, end.UnixNano())}
}
