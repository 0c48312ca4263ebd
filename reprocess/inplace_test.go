package reprocess_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// serving changes what the view shows and the table's indexes.
func reshape(where string, indexes ...[]string) func(*plan.Staging) {
	return func(in *plan.Staging) {
		in.Spec.Serve.Where, in.Spec.Serve.Indexes = where, indexes
		in.Layout.Where, in.Layout.Indexes = where, indexes
	}
}

func (w *world) text(sql string) string {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), sql)
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

const indexNames = `SELECT indexdef FROM pg_indexes WHERE tablename = 'counts__v1' ORDER BY indexname`

func TestWhatIsNotInTheHashIsAppliedInPlace(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "live", job.ExitOK)
	w.exact()

	shown := w.stage("aaa", reshape("n > 1000000", []string{"n"}))
	if !shown.FlipOnly || !slices.Equal(shown.Applied, []string{"serve.where", "serve.indexes"}) {
		t.Fatalf("staged %+v", shown)
	}
	w.finish(shown.Deployment, "", job.ExitOK)
	if got := w.shown(); got != 0 {
		t.Errorf("serve.where hides the row; readers see %d", got)
	}
	// The watch of the deployment before may still act on the layout that it read, and does it again by the new one.
	w.await("the index being made", func() bool { return strings.Contains(w.text(indexNames), "(n)") })
	if got := w.text(`SELECT message::text FROM kappactl.event WHERE kind = 'applied'`); !strings.Contains(got, `"serve.where", "serve.indexes"`) {
		t.Errorf("history says %q", got)
	}
	if again := w.stage("aaa", reshape("n > 1000000", []string{"n"})); !again.Nothing {
		t.Errorf("an unchanged file: %+v", again)
	}

	back := w.stage("aaa")
	w.finish(back.Deployment, "", job.ExitOK)
	w.exact()
	w.await("the index being dropped", func() bool { return !strings.Contains(w.text(indexNames), "(n)") })
	if got := w.text(`SELECT count(*)::text FROM kappactl.version`); got != "1" {
		t.Errorf("%s versions: something was staged anew", got)
	}
}

func TestAChangeThatPostgreSQLRefusesLeavesTheViewAndTheFileAsTheyWere(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "live", job.ExitOK)
	w.finish(w.stage("bbb", func(in *plan.Staging) { in.Promote = job.PromoteAuto }).Deployment, "live", job.ExitOK)
	bad := w.stage("bbb", reshape("no_such_column > 1"))
	d := w.finish(bad.Deployment, "", job.ExitUsage)
	if !strings.Contains(d.Message, "no_such_column") || d.State != job.Observing {
		t.Errorf("%+v", d)
	}
	w.exact()
	if got := w.stage("bbb"); !got.Nothing {
		t.Errorf("the file that is in force: %+v", got)
	}
	w.must(1, ledger.Rollback, ledger.Args{})
	if w.live() != "v1" {
		t.Errorf("live is %s: the rollback window did not survive", w.live())
	}
}

func TestANewKeepOldMovesTheRollbackWindow(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "live", job.ExitOK)
	w.finish(w.stage("bbb", func(in *plan.Staging) { in.Promote = job.PromoteAuto }).Deployment, "live", job.ExitOK)
	got := w.stage("bbb", func(in *plan.Staging) { in.Spec.KeepOld = 3 * time.Hour })
	if got.FlipOnly || got.Nothing || !slices.Equal(got.Applied, []string{"keep_old"}) {
		t.Fatalf("%+v", got)
	}
	left := w.text(`SELECT (standby_until > clock_timestamp() + interval '2 hours')::text FROM kappactl.version WHERE number = 1
		UNION ALL SELECT (observe_until > clock_timestamp() + interval '2 hours')::text FROM kappactl.deployment WHERE number = 2`)
	if left != "true\ntrue" {
		t.Errorf("the windows end after two hours: %s", left)
	}
}

func TestIndexesOfAStandbyFollowItsFile(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "live", job.ExitOK)
	w.finish(w.stage("bbb", func(in *plan.Staging) { in.Promote = job.PromoteAuto }).Deployment, "live", job.ExitOK)
	w.finish(w.stage("aaa", reshape("", []string{"n"}), auto).Deployment, "live", job.ExitOK)
	w.await("the index", func() bool { return strings.Contains(w.text(indexNames), "(n)") })
	w.exact()
}

func TestALongerKeepDoesNotShowPartsOfRowsThatWereDeleted(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	keep := func(d time.Duration) func(*plan.Staging) {
		return func(in *plan.Staging) {
			in.Spec.Serve.Keep = d
			in.Layout.Keep = nil
			if d > 0 {
				in.Layout.Keep = &job.Keep{Column: "at", Type: "timestamp with time zone", For: d}
			}
			in.Layout.View = append(in.Layout.View, job.ViewColumn{Name: "at", Type: "timestamp with time zone", Finish: `s."at"`})
			in.Layout.States = append(in.Layout.States, job.StateColumn{
				Name: "at", Type: "timestamp with time zone", Combine: `coalesce(t."at", e."at")`, Aggregate: `max(e."at")`,
			})
		}
	}
	w.finish(w.stage("aaa", keep(24*time.Hour)).Deployment, "live", job.ExitOK)
	w.sql(`UPDATE kappactl.version SET expired_before = now() - interval '24 hours'`)
	w.finish(w.stage("aaa", keep(72*time.Hour)).Deployment, "", job.ExitOK)
	from := func() string {
		return w.text(`SELECT coalesce(layout #>> '{keep,for}', '0') || ' ' || (layout #>> '{keep,from}' IS NOT NULL)::text FROM kappactl.version`)
	}
	if got := from(); got != "259200000000000 true" {
		t.Errorf("keep and from: %s", got)
	}
	if again := w.stage("aaa", keep(72*time.Hour)); !again.Nothing {
		t.Errorf("an unchanged file: %+v", again)
	}
	w.finish(w.stage("aaa", keep(0)).Deployment, "", job.ExitOK)
	if got := from(); got != "0 true" {
		t.Errorf("kept for ever: %s", got)
	}
	if again := w.stage("aaa", keep(0)); !again.Nothing {
		t.Errorf("an unchanged file: %+v", again)
	}
	if got := w.text(`SELECT pg_get_viewdef('public.counts')`); !strings.Contains(got, "timestamp with time zone") {
		t.Errorf("the view shows what comes late for deleted rows: %s", got)
	}
}
