package reprocess_test

import (
	"errors"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// column adds a column to the view.
func column(c job.ViewColumn) func(*plan.Staging) {
	return func(in *plan.Staging) { in.Layout.View = append(in.Layout.View, c) }
}

func TestAnAddedColumnIsNullAfterARollbackAndIsNotTakenAwayAgain(t *testing.T) {
	w := firstLive(t, 100)
	twice := column(job.ViewColumn{Name: "twice", Type: "bigint", Finish: `2 * s."n"`})
	var r *job.Refusal
	if _, err := w.tryStage("bbb", twice); !errors.As(err, &r) || r.Code != job.ExitConflict || r.Next != "deploy again with --allow-column-change" {
		t.Fatalf("a new column without the flag: %v", err)
	}
	second := w.stage("bbb", twice, auto, func(in *plan.Staging) { in.AllowColumnChange = true })
	w.finish(second.Deployment, "live", job.ExitOK)
	const row = `SELECT n || ' ' || coalesce(twice::text, 'null') || ' ' || pg_typeof(twice) FROM public.counts`
	if got := w.text(row); got != "100 200 bigint" {
		t.Errorf("after the promote: %s", got)
	}
	if _, err := w.tryStage("ccc"); !errors.As(err, &r) || r.Code != job.ExitConflict {
		t.Fatalf("a version without the column: %v", err)
	}
	has(t, r.Cause, `column "twice" (bigint) would be removed`)
	w.must(1, ledger.Rollback, ledger.Args{})
	if got := w.text(row); got != "100 null bigint" {
		t.Errorf("after the rollback: %s", got)
	}
	w.must(2, ledger.Promote, ledger.Args{})
	if got := w.text(row); got != "100 200 bigint" {
		t.Errorf("promoted again: %s", got)
	}
}

func TestAComputedColumnOfAnotherTypeFailsTheDeployBeforeItsReplay(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	code := func(expression string) func(*plan.Staging) {
		return column(job.ViewColumn{Name: "code", Computed: true, Finish: expression})
	}
	w.finish(w.stage("aaa", code(`n::text::varchar(10)`)).Deployment, "live", job.ExitOK)
	s := w.stage("bbb", code(`n::text::varchar(20)`))
	d := w.finish(s.Deployment, "", job.ExitConflict)
	has(t, d.Message, `column "code" would change from character varying(10) to character varying(20)`)
	if got := w.text(`SELECT (frozen_at IS NULL)::text || (SELECT count(*) FROM kappactl.segment WHERE number = 2) FROM kappactl.version WHERE number = 2`); got != "true0" {
		t.Errorf("its replay began: %s", got)
	}
	if w.live() != "v1" {
		t.Errorf("live is %s", w.live())
	}
	w.exact()
}
