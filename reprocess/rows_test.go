package reprocess_test

import (
	"context"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func TestRetireWaitsForSnapshotsThatOnlyLookOlderThanTheFlip(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	// A transaction that is older than the flip holds nothing that the tables need, but every snapshot's lower bound.
	if _, err := w.connect().Exec(t.Context(), `BEGIN; SELECT pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	w.must(2, ledger.Promote, ledger.Args{})
	reader, next := w.connect(), w.connect()
	end := w.snapshot(reader)
	answered := make(chan *ledger.Answer, 1)
	go func() { answered <- w.ask(1, ledger.Retire, ledger.Args{Now: true}) }()
	for len(answered) == 0 { // a reader is always there, none for long
		another := w.snapshot(next)
		end()
		end, reader, next = another, next, reader
	}
	end()
	if a := <-answered; a.Code != job.ExitOK {
		t.Errorf("%+v", a)
	}
}

// locked holds the row of a job's deployments until the returned function is called.
func (w *world) locked() (end func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT 1 FROM kappactl.job FOR UPDATE`); err != nil {
				return err
			}
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-begun
	return func() { cancel(); <-ended }
}

func TestActsWaitForRowsThatOthersHold(t *testing.T) {
	w := newWorld(t, 100)
	w.config.PromoteDeadline = time.Minute
	firstLiveFor(t, w)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	end := w.locked()
	answered := make(chan *ledger.Answer, 1)
	go func() { answered <- w.ask(2, ledger.Pause, ledger.Args{}) }()
	tries := map[string]bool{}
	w.await("a second try to get the row", func() bool {
		if since := w.text(`SELECT coalesce(max(xact_start)::text, '') FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`); since != "" {
			tries[since] = true
		}
		return len(tries) > 1 || len(answered) > 0
	})
	end()
	if a := <-answered; a.Code != job.ExitOK {
		t.Errorf("%+v", a)
	}
}
