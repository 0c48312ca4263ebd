package reprocess_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// gone leaves v2 as an agent leaves it whose workers gave up before its controller did.
func (w *world) gone() {
	w.t.Helper()
	w.sql(`UPDATE kappactl.version SET phase = 'catching_up', verdict = 'stalled', reason = '{"code": "no_worker"}' WHERE number = 2`)
	w.sql(`UPDATE kappactl.observation SET sampled_at = sampled_at - interval '1 minute'`)
}

// claimed asks to promote v2 and answers with a controller of its own, so that no sample comes of it.
func (w *world) claimed(c *reprocess.Controller) (id int64, answered chan error) {
	w.t.Helper()
	id, err := w.store.Ask(w.t.Context(), ledger.Request{Job: "counts", Number: 2, Verb: ledger.Promote})
	if err != nil {
		w.t.Fatal(err)
	}
	w.sql(`UPDATE kappactl.request SET claim = 1, owner = 'the first', lease = clock_timestamp() + interval '1 hour'`)
	answered = make(chan error, 1)
	go func() { answered <- c.Answer(w.t.Context(), id, 1) }()
	return id, answered
}

// abandoned is a job with a live version and a verified one, whose agent is gone.
func abandoned(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 100)
	stop := w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "live", job.ExitOK)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	stop()
	w.gone()
	return w
}

func TestPromoteRightAfterATakeoverWaitsForTheFirstSample(t *testing.T) {
	w := abandoned(t)
	w.config.PromoteDeadline, w.config.FirstSample = time.Minute, time.Minute // on a loaded machine a first sample takes its time
	id, answered := w.claimed(w.controller())
	w.run(1, nil)
	if a := w.answer(id); a.Code != job.ExitOK || w.live() != "v2" {
		t.Errorf("%+v", a)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestPromoteDoesNotWaitForASampleForEver(t *testing.T) {
	w := abandoned(t)
	w.config.FirstSample = 100 * time.Millisecond
	id, answered := w.claimed(w.controller())
	if a := w.answer(id); a.Code != job.ExitNotCaughtUp || w.live() != "v1" {
		t.Errorf("%+v", a)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// TestAViewThatCannotBeWrittenLeavesTheRollbackWindowGoverned: the refusal is no error that we know of.
func TestAViewThatCannotBeWrittenLeavesTheRollbackWindowGoverned(t *testing.T) {
	w := firstLive(t, 100)
	w.finish(w.stage("bbb", auto).Deployment, "live", job.ExitOK)
	w.sql(`CREATE FUNCTION public.no() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'views are frozen'; END $$`)
	w.sql(`CREATE EVENT TRIGGER frozen ON ddl_command_end WHEN TAG IN ('CREATE VIEW') EXECUTE FUNCTION public.no()`)
	s := w.stage("bbb", reshape("n > 1"))
	d := w.finish(s.Deployment, "", job.ExitFailed)
	has(t, d.Message, "views are frozen")
	if d.State != job.Observing || d.ObserveUntil == nil || *d.Previous != 1 {
		t.Fatalf("the window of the flip goes on under the newest deployment: %+v", d)
	}
	w.exact()
	w.sql(`DROP EVENT TRIGGER frozen`)
	w.sql(`UPDATE kappactl.deployment SET observe_until = clock_timestamp() WHERE id = @id`, pgx.NamedArgs{"id": s.Deployment})
	w.await("the end of the window", func() bool { return w.deployment(s.Deployment).State == job.Settled })
	w.must(1, ledger.Rollback, ledger.Args{})
	w.exact()
}
