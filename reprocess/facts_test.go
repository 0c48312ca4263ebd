package reprocess

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/status"
)

func TestFactsOfAVersionComeFromItsFileItsPositionsItsSegmentsAndItsChecks(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	in := testStaging("aaa")
	in.Spec.Checks = []job.Check{{Name: "not_empty", When: "before"}, {Name: "sane", When: "both"}, {Name: "never_run", When: "after"}}
	mustStage(t, s, in)
	exec(t, pool, `INSERT INTO kappactl.position (job, number, topic_id, topic, partition, covers_from, next, frozen_end)
		VALUES ('pageviews', 1, gen_random_uuid(), 'pageviews', 0, 7, 9, 9), ('pageviews', 1, gen_random_uuid(), 'pageviews', 1, 0, 9, 9)`, nil)
	exec(t, pool, `INSERT INTO kappactl.segment (job, number, topic_id, topic, partition, from_offset, to_offset, state, deadline)
		VALUES ('pageviews', 1, gen_random_uuid(), 'pageviews', 0, 7, 8, 'done', '2026-01-01T00:00:00Z'),
			('pageviews', 1, gen_random_uuid(), 'pageviews', 0, 8, 9, 'open', '2026-01-03T00:00:00Z'),
			('pageviews', 1, gen_random_uuid(), 'pageviews', 1, 0, 9, 'open', '2026-01-02T00:00:00Z')`, nil)
	exec(t, pool, `INSERT INTO kappactl.check_result (deployment, job, number, name, stage, definition, outcome, detail, seconds, positions, diff, failures, at)
		SELECT d.id, d.job, d.number, c.name, c.stage, '{}', c.outcome, c.detail::jsonb, 0.5, '{"pageviews/0": 9}', c.diff::jsonb, c.failures, c.at::timestamptz
		FROM kappactl.deployment d, (VALUES ('not_empty', 'before', 'pass', '{}', NULL, 0, '2026-01-01T12:00:00Z'),
			('sane', 'before', 'pass', '{}', NULL, 0, '2026-01-01T12:00:00Z'),
			('sane', 'after', 'fail', '{"code": "check_error", "args": {"cause": "too many"}}', '{"changed": 3}', 1, '2026-01-01T12:00:01Z')) AS c (name, stage, outcome, detail, diff, failures, at)`, nil)
	facts, err := s.Facts(t.Context(), "pageviews")
	if err != nil {
		t.Fatal(err)
	}
	before, after := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 12, 0, 1, 0, time.UTC)
	deadline := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	want := map[string]status.Facts{"v1": {
		Ready: in.Spec.Ready, Starts: map[string]int64{"pageviews/0": 7, "pageviews/1": 0}, Segments: 3, Done: 1, Deadline: &deadline,
		Checks: []status.Check{
			{Name: "not_empty", When: "before", Stage: "before", Outcome: "pass", At: &before, Seconds: 0.5, Offsets: map[string]int64{"pageviews/0": 9}},
			{
				Name: "sane", When: "both", Stage: "after", Outcome: "fail", Detail: "too many", DetailCode: reason.CodeCheckError,
				At: &after, Seconds: 0.5, Failures: 1,
				Offsets: map[string]int64{"pageviews/0": 9}, Diff: &checks.Diff{Changed: 3},
			},
			{Name: "never_run", When: "after"},
		},
	}}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Error(diff)
	}
}

func TestFactsKeepVersionsThatHaveNotEndedAndTheNewest(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	makeLive(t, pool, mustStage(t, s, testStaging("aaa")))
	for _, hash := range []string{"bbb", "ccc"} {
		mustStage(t, s, testStaging(hash))
		exec(t, pool, `UPDATE kappactl.version SET phase = 'aborted', ended_at = now() WHERE phase = 'staged'`, nil)
		exec(t, pool, `UPDATE kappactl.deployment SET state = 'aborted', ended_at = now() WHERE state = 'rolling_out'`, nil)
	}
	facts, err := s.Facts(t.Context(), "pageviews")
	if err != nil {
		t.Fatal(err)
	}
	_, live := facts["v1"]
	_, newest := facts["v3"]
	if len(facts) != 2 || !live || !newest {
		t.Errorf("facts of %d versions: %v", len(facts), facts)
	}
}

func TestTheNewestDeploymentIsTheLastOneOrNone(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	if d, err := s.Newest(t.Context(), "pageviews"); d != nil || err != nil {
		t.Errorf("newest of nothing: %v %v", d, err)
	}
	makeLive(t, pool, mustStage(t, s, testStaging("aaa")))
	second := mustStage(t, s, testStaging("bbb"))
	d, err := s.Newest(t.Context(), "pageviews")
	if err != nil || d == nil || d.ID != second.Deployment || d.Number != 2 {
		t.Errorf("newest: %+v %v", d, err)
	}
}
