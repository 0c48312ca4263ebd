package reprocess_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// TestACandidateThatShowsNextToNothingWaitsForAPerson: a filter with a typing error must not empty what readers see by itself.
func TestACandidateThatShowsNextToNothingWaitsForAPerson(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("bbb", reshape("n < 0"), auto)
	d := w.finish(s.Deployment, "live", job.ExitChecks)
	has(t, d.Message, "0 rows", "v1", "not promoted automatically")
	has(t, d.Next, "kappactl promote counts v2")
	if w.live() != "v1" || d.State != job.Waiting {
		t.Errorf("%s is live; %+v", w.live(), d)
	}
	w.must(2, ledger.Promote, ledger.Args{})
	if w.live() != "v2" {
		t.Errorf("%s is live after a person promoted v2", w.live())
	}
}

// TestAnAbortEndsTheBuildOfTheTable holds the table so that its build stands still, as one that takes an hour.
func TestAnAbortEndsTheBuildOfTheTable(t *testing.T) {
	const building = `SELECT count(*)::text FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%TRUNCATE%' AND pid <> pg_backend_pid()`
	w := firstLive(t, 100)
	w.setIdle(2, true)
	w.stage("bbb")
	w.await("the replay", func() bool { return w.version(2).Phase == job.Replaying })
	reader := w.connect()
	if _, err := reader.Exec(t.Context(), `BEGIN; LOCK TABLE public.counts__v2 IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	w.setIdle(2, false)
	w.await("the build", func() bool { return w.text(building) == "1" })
	answered := make(chan *ledger.Answer, 1)
	go func() { answered <- w.ask(2, ledger.Abort, ledger.Args{}) }()
	w.await("the end of the build", func() bool { return w.text(building) == "0" })
	if _, err := reader.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if a := <-answered; a.Code != job.ExitOK {
		t.Errorf("%+v", a)
	}
	w.exact()
}
