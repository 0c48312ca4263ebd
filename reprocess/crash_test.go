package reprocess_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// killer ends a controller's context at the first passing of a point: what it does after that fails, as after a crash.
type killer struct {
	mu     sync.Mutex
	point  string
	cancel context.CancelFunc
	struck chan struct{}
}

func (k *killer) hook(point string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.point == point {
		k.point = ""
		k.cancel()
		close(k.struck)
	}
}

// crash runs a controller that dies at point, lets its leases run out, and then runs another one.
func (w *world) crash(point string, begin func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	k := &killer{point: point, cancel: cancel, struck: make(chan struct{})}
	c := w.controller()
	c.SetHook(k.hook)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.host(ctx, c, "the first", 3*time.Second) // a claim whose commit was in doubt runs out by itself
	}()
	begin()
	select {
	case <-k.struck:
	case <-time.After(3 * time.Minute):
		w.t.Fatalf("%s was not passed", point)
	}
	<-ended
	w.sql(`UPDATE kappactl.deployment SET lease = now() - interval '1 second' WHERE owner = 'the first'`)
	w.sql(`UPDATE kappactl.request SET lease = now() - interval '1 second' WHERE owner = 'the first'`)
	w.sql(`UPDATE kappactl.position SET hold_until = now() - interval '1 second' WHERE hold IS NOT NULL`)
	w.run(1, nil)
}

func TestAnotherControllerFinishesADeployThatDiedAtAnyStep(t *testing.T) {
	for _, point := range []string{
		reprocess.FaultDeployCreated, reprocess.FaultDeployFrozen, reprocess.FaultDeployFilled, reprocess.FaultDeployIndexed,
		reprocess.FaultDeploySealed, reprocess.FaultDeployVerified, reprocess.FaultPromoteHeld, reprocess.FaultPromoteChecked,
		reprocess.FaultPromoteFlipping, reprocess.FaultPromoteFlipped,
	} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t, 100, 50)
			stop := w.run(1, nil)
			w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
			stop()
			w.alone = true
			defer w.worker()()
			var s plan.Staged
			w.crash(point, func() {
				s = w.stage("bbb", func(s *plan.Staging) { s.Promote = job.PromoteAuto })
			})
			w.finish(s.Deployment, "live", job.ExitOK)
			w.brokers.produce(0, 5)
			w.exact()
			if w.live() != "v2" {
				t.Errorf("live is %s", w.live())
			}
		})
	}
}

func TestAnotherAgentFinishesARequestThatDiedAtAnyStep(t *testing.T) {
	type act struct {
		point  string
		number job.Number
		verb   ledger.Verb
	}
	for _, a := range []act{
		{reprocess.FaultPromoteHeld, 2, ledger.Promote},
		{reprocess.FaultPromoteChecked, 2, ledger.Promote},
		{reprocess.FaultPromoteFlipping, 2, ledger.Promote},
		{reprocess.FaultPromoteFlipped, 2, ledger.Promote},
		{reprocess.FaultPromoteAnswered, 2, ledger.Promote},
		{reprocess.FaultPromoteFlipping, 1, ledger.Rollback},
		{reprocess.FaultPromoteFlipped, 1, ledger.Rollback},
		{reprocess.FaultRetireMarked, 1, ledger.Retire},
		{reprocess.FaultRetireDropped, 1, ledger.Retire},
	} {
		t.Run(string(a.verb)+" "+a.point, func(t *testing.T) {
			w := newWorld(t, 100, 50)
			stop := w.run(1, nil)
			w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
			w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
			if a.verb != ledger.Promote {
				w.must(2, ledger.Promote, ledger.Args{})
			}
			stop()
			w.alone = true
			defer w.worker()()
			var id int64
			w.crash(a.point, func() {
				var err error
				id, err = w.store.Ask(t.Context(), ledger.Request{Job: "counts", Number: a.number, Verb: a.verb, Args: ledger.Args{Now: true}})
				if err != nil {
					t.Fatal(err)
				}
			})
			if got := w.answer(id); got.Code != job.ExitOK {
				t.Errorf("%+v", got)
			}
			w.brokers.produce(0, 5)
			w.exact()
			var flips int
			if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM kappactl.event WHERE kind IN ('promoted', 'rolled_back') AND number = @number`,
				pgx.NamedArgs{"number": int(a.number)}).Scan(&flips); err != nil {
				t.Fatal(err)
			}
			want := map[ledger.Verb]int{ledger.Promote: 1, ledger.Rollback: 2, ledger.Retire: 1}[a.verb]
			if flips != want {
				t.Errorf("%d flips to v%d, want %d", flips, a.number, want)
			}
		})
	}
}

// TestAZombieWritesNothing pauses a controller at a step until another one has taken over and gone on.
func TestAZombieWritesNothing(t *testing.T) {
	w := newWorld(t, 100)
	frozen, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	zombie := w.controller()
	zombie.SetHook(func(point string) {
		if point == reprocess.FaultDeployFilled {
			once.Do(func() { close(frozen); <-goOn })
		}
	})
	s := w.stage("aaa")
	w.alone = true
	defer w.worker()()
	w.sql(`UPDATE kappactl.deployment SET claim = claim + 1, owner = 'zombie', lease = now() + interval '1 hour'`)
	ended := make(chan error, 1)
	go func() { ended <- zombie.Control(t.Context(), s.Deployment, 1) }()
	<-frozen
	w.sql(`UPDATE kappactl.deployment SET owner = NULL`)
	stop := w.run(1, nil)
	w.finish(s.Deployment, "live", job.ExitOK)
	close(goOn)
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Logf("the zombie said: %v", err)
	}
	w.brokers.produce(0, 7)
	w.exact()
	stop()
}
