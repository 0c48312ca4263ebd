package e2e_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"testing"
	"time"

	agents "github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/engine"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

// hosted is an agent in this process, with short leases. Its way to the database can be cut, which to everybody else is
// kill -9: what it had begun is rolled back, what it held is held until the lease ends.
type hosted struct {
	way    *proxy
	cancel context.CancelFunc
	ended  chan struct{}
}

// hostAgent starts an agent and ends it with the test.
func hostAgent(t *testing.T, brokers []string, dsn string) *hosted {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	h := &hosted{way: startProxy(t, hostOf(t, dsn)), cancel: cancel, ended: make(chan struct{})}
	id := "agent-" + rand.Text()
	pool, err := pg.Open(t.Context(), pg.Config{DSN: h.way.dsn(dsn), Application: "kappactl agent", MaxConns: 24, Mark: id})
	if err != nil {
		t.Fatal(err)
	}
	to := kafka.Config{Brokers: brokers}
	admin, err := kafka.NewAdmin(to)
	if err != nil {
		t.Fatal(err)
	}
	const lease, beat = time.Second, 200 * time.Millisecond
	log := slog.New(slog.DiscardHandler)
	living := func(ctx context.Context) ([]string, error) { return agents.IDs(ctx, pool, 5*beat) }
	work := speedlayer.New(speedlayer.Deps{Pool: pool, Kafka: to, Agent: id, Living: living, Log: log, Now: time.Now},
		speedlayer.Config{Lease: lease, Memory: 64 << 20})
	store, views := &speedlayer.Store{}, serving.New(serving.Config{})
	controller := reprocess.NewController(reprocess.Deps{
		Pool: pool, Brokers: admin, Speed: store, Engines: engine.Set{job.SQL: store}, Serving: views,
		Log: log, Now: time.Now, Rand: mathrand.New(mathrand.NewPCG(mathrand.Uint64(), 1)),
	}, reprocess.Config{Tick: 50 * time.Millisecond, HoldFor: time.Second, RetryEvery: 20 * time.Millisecond, PollEvery: 5 * time.Millisecond})
	a := agents.New(agents.Deps{Pool: pool, Runner: work, Work: controller.Work(), Log: log}, agents.Config{
		ID: id, Dialect: query.Dialect, Poll: 20 * time.Millisecond, Heartbeat: beat, Lease: lease, Drain: 10 * time.Second,
	})
	go func() {
		defer close(h.ended)
		_ = a.Run(ctx) // one that is cut off does not end in time
		admin.Close()
		pool.Close()
	}()
	t.Cleanup(func() { h.cut(); <-h.ended })
	return h
}

// cut ends the agent without grace.
func (h *hosted) cut() {
	_ = h.way.listen.Close()
	h.way.cut()
	h.cancel()
}
