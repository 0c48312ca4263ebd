package plan

import (
	"context"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/readiness"
	"github.com/kappactl/kappactl/serving"
)

func TestRowsOlderThanWhatIsCoveredAreCountedByTheirTimeKey(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	views := serving.New(serving.Config{})
	ref := job.Ref{Job: "hours", Number: 1}
	before := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	for kind, sample := range map[string]string{
		"timestamp with time zone":    "2026-01-09T23:00:00Z",
		"timestamp without time zone": "2026-01-09T23:00:00",
		"date":                        "2026-01-09",
	} {
		l := job.Layout{
			Shape:  job.Rollup,
			Keys:   []job.KeyColumn{{Name: "hour", Type: kind, Time: true}},
			States: []job.StateColumn{{Name: "n", Type: "bigint", Combine: `t."n" + e."n"`, Aggregate: `sum(e."n")::bigint`}},
			View:   []job.ViewColumn{{Name: "hour", Type: kind, Finish: `s."hour"`, Key: true}, {Name: "n", Type: "bigint", Finish: `s."n"`}},
		}
		if err := views.Create(t.Context(), pool, job.Version{Ref: ref, Schema: "public", Layout: l}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"2025-12-31", sample, "2026-01-10", "2026-01-11"} {
			if _, err := pool.Exec(t.Context(), `INSERT INTO public.hours__v1 (hour, n) VALUES ('`+at+`', 1)`); err != nil {
				t.Fatal(err)
			}
		}
		lost := readiness.Lost{Before: &before}
		q := Survey{DB: pool, Serving: views}
		c := histories{live: ref, liveSpec: &job.Spec{Serve: job.Serve{View: job.ViewName{Schema: "public"}}}, layout: l}
		if err := q.older(t.Context(), c, &lost); err != nil {
			t.Fatal(err)
		}
		if lost.Older == nil || *lost.Older != 2 {
			t.Errorf("%s: %s", kind, lost.Rows())
		}
		if err := views.Drop(t.Context(), pool, job.Version{Ref: ref, Schema: "public"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACountThatIsCutShortLeavesTheLossKnown(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	views := serving.New(serving.Config{})
	ref := job.Ref{Job: "hours", Number: 1}
	l := job.Layout{
		Shape: job.Rollup, Keys: []job.KeyColumn{{Name: "hour", Type: "date", Time: true}}, View: []job.ViewColumn{{Name: "hour", Type: "date", Finish: `s."hour"`, Key: true}},
	}
	if err := views.Create(t.Context(), pool, job.Version{Ref: ref, Schema: "public", Layout: l}); err != nil {
		t.Fatal(err)
	}
	lost := readiness.Lost{Before: new(time.Now())}
	c := histories{live: ref, liveSpec: &job.Spec{Serve: job.Serve{View: job.ViewName{Schema: "public"}}}, layout: l}
	err := pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		if _, err := tx.Exec(t.Context(), `LOCK TABLE public.hours__v1`); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return Survey{DB: pool, Serving: views}.older(limited, c, &lost)
	})
	if err != nil || lost.Older != nil || !lost.Why.Is(reason.CodeNoTimeLeft) {
		t.Errorf("%v: %s", err, lost.Rows())
	}
}
