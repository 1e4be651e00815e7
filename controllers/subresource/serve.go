package subresource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// lame is how long a process that was told to stop still takes requests: until everyone has heard that it goes.
	lame = 3 * time.Second
	// ending bounds how long requests under way may take after that.
	ending = 10 * time.Second
)

// endpoint is a port with what is served there.
type endpoint struct {
	address string
	handler http.Handler
	tls     *tls.Config
}

// listener serves its endpoints until its context ends, and then lets requests and streams come to their end.
type listener struct {
	endpoints []endpoint
	streams   *Streams
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every instance serves.
func (l *listener) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (l *listener) Start(ctx context.Context) error {
	g, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	var servers []*http.Server
	for _, e := range l.endpoints {
		socket, err := net.Listen("tcp", e.address)
		if err != nil {
			return errors.Join(fmt.Errorf("listening on %s: %w", e.address, err), closeAll(servers))
		}
		srv := &http.Server{
			Handler:           e.handler,
			TLSConfig:         e.tls,
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
		}
		servers = append(servers, srv)
		g.Go(func() error {
			if err := srv.ServeTLS(socket, "", ""); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serving %s: %w", e.address, err)
			}
			return nil
		})
	}
	select {
	case <-ctx.Done():
		return errors.Join(l.shutDown(context.WithoutCancel(ctx), servers), g.Wait())
	case <-failed.Done():
		return errors.Join(closeAll(servers), g.Wait())
	}
}

func (l *listener) shutDown(ctx context.Context, servers []*http.Server) error {
	goodbye := time.NewTimer(lame)
	defer goodbye.Stop()
	<-goodbye.C
	ctx, cancel := context.WithTimeout(ctx, ending)
	defer cancel()
	var errs []error
	for _, srv := range servers {
		errs = append(errs, srv.Shutdown(ctx))
	}
	l.streams.Wait()
	return errors.Join(errs...)
}

func closeAll(servers []*http.Server) error {
	var errs []error
	for _, srv := range servers {
		errs = append(errs, srv.Close())
	}
	return errors.Join(errs...)
}
