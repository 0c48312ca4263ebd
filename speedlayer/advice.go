package speedlayer

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/retry"
)

// advice commits positions to the version's Kafka group, for other people's lag tools. Nothing of ours reads them, so
// they are late by up to a second, and lost when the brokers refuse them.
type advice struct {
	*run
	admin *kafka.Admin
	end   func()        // of the use of admin
	given chan struct{} // there is something to commit
	stop  context.CancelFunc
	done  chan struct{}

	mu   sync.Mutex // guards next
	next map[job.Partition]int64
	told bool // that it was refused; owned by the loop

	group string // empty: not known yet; owned by the loop
}

const adviseEvery = time.Second

func newAdvice(r *run) (*advice, error) {
	admin, end, err := r.admin()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &advice{
		run: r, admin: admin, end: end, stop: stop, done: make(chan struct{}), given: make(chan struct{}, 1),
		next: map[job.Partition]int64{},
	}
	go a.loop(ctx)
	return a, nil
}

// give replaces what is to be committed next.
func (a *advice) give(next map[job.Partition]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.Copy(a.next, next)
	select {
	case a.given <- struct{}{}:
	default:
	}
}

func (a *advice) loop(ctx context.Context) {
	defer close(a.done)
	for {
		select {
		case <-a.given:
		case <-ctx.Done():
		}
		if retry.Sleep(ctx, adviseEvery) != nil {
			break
		}
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
	err := a.identify(ctx)
	if err == nil {
		err = a.admin.CommitGroup(ctx, a.group, next)
	}
	if err == nil {
		return
	}
	a.again(next)
	if ctx.Err() == nil && !a.told {
		a.told = true
		a.log.Info("advisory offsets are not kept by the brokers; nothing depends on them", "group", a.group, "error", err)
	}
}

// again has what could not be committed committed later. What came meanwhile is newer.
func (a *advice) again(next map[job.Partition]int64) {
	a.mu.Lock()
	maps.Copy(next, a.next)
	a.mu.Unlock()
	a.give(next)
}

// identify finds out the name of the group.
func (a *advice) identify(ctx context.Context) error {
	if a.group != "" {
		return nil
	}
	of, err := pg.Identity(ctx, a.Pool)
	if err == nil {
		a.group = a.ref.Group(of)
	}
	return err
}

func (a *advice) close() {
	a.stop()
	<-a.done
	a.end()
}
