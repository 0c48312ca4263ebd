package reprocess_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

func adoptArgs() ledger.Args {
	return ledger.Args{View: &job.ViewName{Schema: "public", Name: "counts"}}
}

// TestATableBecomesAJobWhileReadersRead takes a table over, replays beside it, flips, goes back, and retires it.
func TestATableBecomesAJobWhileReadersRead(t *testing.T) {
	w := newWorld(t, 100)
	w.sql(`CREATE TABLE public.counts (n bigint); INSERT INTO public.counts VALUES (7); CREATE VIEW public.report AS SELECT n + 1 AS n FROM public.counts`)
	_, err := w.tryStage("aaa")
	var r *job.Refusal
	if !errors.As(err, &r) || r.Code != job.ExitConflict || !strings.HasPrefix(r.Next, "kappactl adopt counts --view public.counts ") {
		t.Fatalf("%v", err)
	}
	w.run(2, nil)
	ctx, stop := context.WithCancel(t.Context())
	read := make(chan map[int64]bool)
	go func() { // a reader that never stops, and that no reading may fail
		seen := map[int64]bool{}
		for every(ctx, time.Millisecond) {
			var n, report int64
			if err := w.pool.QueryRow(ctx, `SELECT (SELECT n FROM public.counts), (SELECT n FROM public.report)`).Scan(&n, &report); err != nil && ctx.Err() == nil {
				t.Errorf("a reader got: %v", err)
			} else if err == nil && report != n+1 {
				t.Errorf("the report shows %d beside %d", report, n)
			}
			seen[n] = true
		}
		read <- seen
	}()
	w.must(0, ledger.Adopt, adoptArgs())
	if w.live() != "v0" || w.shown() != 7 || w.version(0).Verdict != job.Unknown {
		t.Errorf("live is %s and shows %d: %+v", w.live(), w.shown(), w.version(0))
	}
	w.sql(`UPDATE public.counts SET n = 8`) // who wrote the table goes on
	w.finish(w.stage("aaa", withChecks(sql("beside live", `SELECT (SELECT n FROM live) = 8`), job.Check{Name: "differs", Diff: &job.DiffLimit{MaxChanged: 1}})).Deployment, "", job.ExitOK)
	if c := w.check(1, "differs"); c.Outcome != "pass" || c.Diff == nil || c.Diff.Changed != 1 {
		t.Errorf("%+v", c)
	}
	w.must(1, ledger.Promote, ledger.Args{})
	w.exact()
	if a := w.ask(0, ledger.Rollback, ledger.Args{}); a.Code != job.ExitUnhealthy || !strings.Contains(a.Next, "kappactl rollback counts v0 --stale") {
		t.Errorf("%+v", a)
	}
	w.must(0, ledger.Rollback, ledger.Args{Stale: true})
	if w.live() != "v0" || w.shown() != 8 {
		t.Errorf("live is %s and shows %d", w.live(), w.shown())
	}
	w.finish(w.stage("aaa", func(s *plan.Staging) { s.Again = true }).Deployment, "live", job.ExitOK)
	w.exact()
	w.must(0, ledger.Retire, ledger.Args{Now: true})
	var kept int64
	if err := w.pool.QueryRow(t.Context(), `SELECT n FROM public.counts__v0`).Scan(&kept); err != nil || kept != 8 || w.version(0).Phase != job.Retired {
		t.Errorf("the adopted table shows %d (%v), its version is %s", kept, err, w.version(0).Phase)
	}
	stop()
	for n := range <-read {
		if n != 7 && n != 8 && n != 100 && n != 0 {
			t.Errorf("a reader saw %d", n)
		}
	}
}

func TestACandidateThatCannotCoverAnAdoptedTableNeedsTheToken(t *testing.T) {
	w := newWorld(t, 100)
	w.brokers.set(func(b *brokers) { b.starts[0] = 10 })
	w.sql(`CREATE TABLE public.counts (n bigint)`)
	w.run(1, nil)
	w.must(0, ledger.Adopt, adoptArgs())
	d := w.finish(w.stage("aaa").Deployment, "", job.ExitGap)
	has(t, d.Message+d.Next, "events/0: v0, which was adopted, may hold results of the records before offset 10", "--accept-shorter-history=")
	_, token, _ := strings.Cut(d.Next, "--accept-shorter-history=")
	w.finish(w.stage("aaa", func(s *plan.Staging) { s.AcceptShorterHistory = token }).Deployment, "", job.ExitOK)
	w.must(2, ledger.Promote, ledger.Args{})
}

func TestDropGivesAnAdoptedTableItsNameBack(t *testing.T) {
	w := newWorld(t, 100)
	w.sql(`CREATE TABLE public.counts (n bigint); INSERT INTO public.counts VALUES (7)`)
	w.run(1, nil)
	w.must(0, ledger.Adopt, adoptArgs())
	w.must(0, ledger.Drop, ledger.Args{})
	var kind string
	if err := w.pool.QueryRow(t.Context(), `SELECT relkind::text FROM pg_class WHERE oid = 'public.counts'::regclass`).Scan(&kind); err != nil || kind != "r" || w.shown() != 7 {
		t.Errorf("%s %v %d", kind, err, w.shown())
	}
	w.must(0, ledger.Adopt, adoptArgs()) // and again
	w.finish(w.stage("aaa", auto).Deployment, "live", job.ExitOK)
	plan, err := w.removal(false)
	if err != nil || len(plan.Keeps) != 1 || plan.Keeps[0] != `"public"."counts__v0"` || len(plan.Drops) != 1 {
		t.Errorf("%+v %v", plan, err)
	}
	w.must(0, ledger.Drop, ledger.Args{KeepView: true})
	if w.shown() != 100 {
		t.Errorf("the view that was kept shows %d", w.shown())
	}
}

func TestAdoptRefusesWhatItCannotTake(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	refused := func(code job.ExitCode, words ...string) {
		t.Helper()
		a := w.ask(0, ledger.Adopt, adoptArgs())
		if a.Code != code {
			t.Fatalf("%+v", a)
		}
		has(t, a.Text()+" "+a.Next, words...)
	}
	refused(job.ExitUsage, "there is no relation public.counts to adopt", "kappactl deploy FILE")
	w.sql(`CREATE TABLE public.counts (n bigint PRIMARY KEY, extra text); CREATE MATERIALIZED VIEW public.totals AS SELECT sum(n) FROM public.counts`)
	refused(job.ExitConflict, "materialized view totals", "--leave-dependants")
	args := adoptArgs()
	args.LeaveDependants = true
	w.must(0, ledger.Adopt, args)
	refused(job.ExitConflict, "has adopted public.counts already")
	_, err := w.tryStage("aaa") // the columns are the contract, before anything is replayed
	var r *job.Refusal
	if !errors.As(err, &r) || r.Code != job.ExitConflict {
		t.Fatal(err)
	}
	has(t, r.Cause, `column "extra" (text) would be removed`)
	other := ledger.Request{Job: "other", Verb: ledger.Adopt, Args: adoptArgs()}
	id, err := w.store.Ask(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if a := w.answer(id); a.Code != job.ExitConflict || !strings.Contains(a.Text(), `belongs to job "counts"`) {
		t.Errorf("%+v", a)
	}
}

func TestAdoptNeverQueuesBeforeReadersForLong(t *testing.T) {
	w := newWorld(t, 100)
	w.config.PromoteDeadline = 500 * time.Millisecond
	w.sql(`CREATE TABLE public.counts (n bigint)`)
	w.run(1, nil)
	done := errors.New("done")
	err := w.pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT * FROM public.counts`); err != nil {
			return err
		}
		a := w.ask(0, ledger.Adopt, adoptArgs())
		if a.Code != job.ExitTimeout || a.Next != "kappactl adopt counts --view public.counts" {
			t.Errorf("%+v", a)
		}
		has(t, a.Text(), "a lock on relation public.counts", "pid ")
		return done
	})
	if !errors.Is(err, done) {
		t.Fatal(err)
	}
	w.must(0, ledger.Adopt, adoptArgs())
}
