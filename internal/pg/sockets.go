package pg

import (
	"context"
	"net"
	"sync"
	"time"
)

// closeWithin is how long Pool.Close waits for connections to close gracefully.
const closeWithin = time.Second

// sockets holds the open sockets of a pool; its mutex guards it.
type sockets struct {
	mu   sync.Mutex
	open map[*socket]struct{}
}

// socket is a connection that removes itself from its pool's set when it is closed.
type socket struct {
	net.Conn
	of *sockets
}

// Close closes the socket.
func (c *socket) Close() error {
	c.of.forget(c)
	return c.Conn.Close()
}

func (s *sockets) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*socket]struct{}{}
	}
	c := &socket{conn, s}
	s.open[c] = struct{}{}
	return c, nil
}

func (s *sockets) forget(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// close closes every open socket without a protocol message; the server then ends the sessions.
func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Conn.Close()
	}
}
