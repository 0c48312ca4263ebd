package speedlayer

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// advice commits positions to the version's Kafka group, for other people's lag tools. Nothing of ours reads them, so
// they are late by up to a second, and lost when the brokers refuse them.
type advice struct {
	*run
	admin *kafka.Admin
	stop  context.CancelFunc
	done  chan struct{}

	mu   sync.Mutex // guards next
	next map[job.Partition]int64
	told bool // that it was refused; owned by the loop
}

const adviseEvery = time.Second

func newAdvice(r *run) (*advice, error) {
	admin, err := kafka.NewAdmin(r.Kafka)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &advice{run: r, admin: admin, stop: stop, done: make(chan struct{}), next: map[job.Partition]int64{}}
	go a.loop(ctx)
	return a, nil
}

// give replaces what is to be committed next.
func (a *advice) give(next map[job.Partition]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.Copy(a.next, next)
}

func (a *advice) loop(ctx context.Context) {
	defer close(a.done)
	for wait(ctx, adviseEvery) == nil {
		a.commit(ctx)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*adviseEvery)
	defer cancel()
	a.commit(end)
}

func (a *advice) commit(ctx context.Context) {
	a.mu.Lock()
	next := a.next
	a.next = map[job.Partition]int64{}
	a.mu.Unlock()
	if len(next) == 0 {
		return
	}
	err := a.admin.CommitGroup(ctx, a.ref.Group(), next)
	if err == nil {
		return
	}
	a.mu.Lock()
	maps.Copy(next, a.next) // what came meanwhile is newer
	a.next = next
	a.mu.Unlock()
	if ctx.Err() == nil && !a.told {
		a.told = true
		a.log.Info("advisory offsets are not kept by the brokers; nothing depends on them", "group", a.ref.Group(), "error", err)
	}
}

func (a *advice) close() {
	a.stop()
	<-a.done
	a.admin.Close()
}
