package e2e_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	agents "github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

// hosted is an agent in this process, with short leases. Its way to the database can be cut, which to everybody else is
// kill -9: what it had begun is rolled back, what it held is held until the lease ends.
type hosted struct {
	way    *way
	cancel context.CancelFunc
	ended  chan struct{}
}

// hostAgent starts an agent and ends it with the test.
func hostAgent(t *testing.T, brokers []string, dsn string) *hosted {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	h := &hosted{way: newWay(t, dsn), cancel: cancel, ended: make(chan struct{})}
	pool, err := pg.Open(t.Context(), pg.Config{DSN: h.way.dsn, Application: "kappactl agent", MaxConns: 24})
	if err != nil {
		t.Fatal(err)
	}
	to := kafka.Config{Brokers: brokers}
	admin, err := kafka.NewAdmin(to)
	if err != nil {
		t.Fatal(err)
	}
	const lease, beat = time.Second, 200 * time.Millisecond
	id, log := "agent-"+rand.Text(), slog.New(slog.DiscardHandler)
	alive := func(ctx context.Context) (int, error) { return agents.Alive(ctx, pool, 5*beat) }
	engine := speedlayer.New(speedlayer.Deps{Pool: pool, Kafka: to, Agent: id, Alive: alive, Log: log, Now: time.Now},
		speedlayer.Config{Lease: lease, Memory: 64 << 20})
	store, views := &speedlayer.Store{}, serving.New(serving.Config{})
	controller := reprocess.NewController(reprocess.Deps{
		Pool: pool, Topics: admin, Replays: store, Positions: store, Gaps: store, Tables: views, Views: views, Expiry: store,
		Log: log, Now: time.Now, Rand: mathrand.New(mathrand.NewPCG(mathrand.Uint64(), 1)),
	}, reprocess.Config{Tick: 50 * time.Millisecond, HoldFor: time.Second, RetryEvery: 20 * time.Millisecond, PollEvery: 5 * time.Millisecond})
	a := agents.New(agents.Deps{Pool: pool, Runner: engine, Controller: controller, Log: log}, agents.Config{
		ID: id, Dialect: query.Dialect, Poll: 20 * time.Millisecond, Heartbeat: beat, Lease: lease, Drain: 10 * time.Second,
	})
	go func() {
		defer close(h.ended)
		_ = a.Run(ctx) // one that is cut off does not end in time
		admin.Close()
		pool.Close()
		h.way.close()
	}()
	t.Cleanup(func() { h.cut(); <-h.ended })
	return h
}

// cut ends the agent without grace.
func (h *hosted) cut() {
	h.way.close()
	h.cancel()
}

// way passes connections on to PostgreSQL until it is closed.
type way struct {
	dsn      string
	listener net.Listener

	mu   sync.Mutex // guards open and over
	open map[net.Conn]bool
	over bool
}

func newWay(t *testing.T, dsn string) *way {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgNetwork(config)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Host = listener.Addr().String()
	q := u.Query()
	q.Del("host")
	q.Del("port")
	u.RawQuery = q.Encode()
	w := &way{dsn: u.String(), listener: listener, open: map[net.Conn]bool{}}
	go w.accept(network, address)
	return w
}

func pgNetwork(c *pgx.ConnConfig) (network, address string) {
	port := fmt.Sprint(c.Port)
	if strings.HasPrefix(c.Host, "/") {
		return "unix", c.Host + "/.s.PGSQL." + port
	}
	return "tcp", net.JoinHostPort(c.Host, port)
}

func (w *way) accept(network, address string) {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial(network, address)
		if err != nil || !w.keep(from, to) {
			_ = from.Close()
			if err == nil {
				_ = to.Close()
			}
			continue
		}
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				w.drop(from, to)
			}()
		}
	}
}

func (w *way) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.open[c] = true
	}
	return !w.over
}

func (w *way) drop(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(w.open, c)
	}
}

// close ends every connection at once, and no other can be made.
func (w *way) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for c := range w.open {
		_ = c.Close()
	}
}
