package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestBelowTheCutOfTheLiveGenerationItsOwnGapsCount: it may have read what was accepted as a gap while records arrived.
func TestBelowTheCutOfTheLiveGenerationItsOwnGapsCount(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	for _, sql := range []string{
		`INSERT INTO kappactl.job (name, view_schema, view_name) VALUES ('hits', 'public', 'hits')`,
		`INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase) VALUES ('hits', 1, 'x', '{}', '{}', 1, '', 'live')`,
		`INSERT INTO kappactl.position (job, number, topic_id, topic, partition, next, covers_from, frozen_end)
			SELECT 'hits', 1, '00000000-0000-0000-0000-000000000001', 't', p, 100, 0, 10 FROM generate_series(0, 1) p`,
		`INSERT INTO kappactl.accepted_gap (job, number, topic_id, topic, partition, from_offset, to_offset, counted)
			VALUES ('hits', 1, '00000000-0000-0000-0000-000000000001', 't', 0, 20, 30, true), ('hits', 1, '00000000-0000-0000-0000-000000000001', 't', 0, 45, 60, false),
			('hits', 1, '00000000-0000-0000-0000-000000000001', 't', 0, 70, 80, false), ('hits', 1, '00000000-0000-0000-0000-000000000001', 't', 1, 20, 30, false)`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	gaps := func() [2][]job.Range {
		spans, err := readSpans(t.Context(), pool, job.Ref{Job: "hits", Number: 1})
		if err != nil || len(spans) != 2 {
			t.Fatal(spans, err)
		}
		if counted := len(spans[0].counted); counted > 1 {
			t.Errorf("%d gaps were counted", counted)
		}
		return [2][]job.Range{spans[0].gaps, spans[1].gaps}
	}
	all := [2][]job.Range{{{From: 20, To: 30}, {From: 45, To: 60}, {From: 70, To: 80}}, {{From: 20, To: 30}}}
	if diff := cmp.Diff(all, gaps()); diff != "" {
		t.Errorf("without generations: %s", diff)
	}
	for _, sql := range []string{
		`INSERT INTO kappactl.generation (job, number, generation, state) VALUES ('hits', 1, 1, 'live'), ('hits', 1, 2, 'building')`,
		`INSERT INTO kappactl.generation_range (job, number, generation, topic_id, topic, partition, from_offset, to_offset, unread)
			VALUES ('hits', 1, 1, '00000000-0000-0000-0000-000000000001', 't', 0, 0, 50, '{[5,7),[46,50)}'), ('hits', 1, 1, '00000000-0000-0000-0000-000000000001', 't', 1, 0, 50, '{}'),
			('hits', 1, 2, '00000000-0000-0000-0000-000000000001', 't', 1, 0, 90, '{[80,81)}')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	want := [2][]job.Range{{{From: 5, To: 7}, {From: 46, To: 50}, {From: 50, To: 60}, {From: 70, To: 80}}, nil}
	if diff := cmp.Diff(want, gaps()); diff != "" {
		t.Errorf("with a live generation: %s", diff)
	}
}
