package reprocess

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

func testSpec() *job.Spec {
	return &job.Spec{
		Job: "pageviews", Mode: job.Kappa, Team: "growth",
		Source:  job.Source{Topics: []string{"pageviews"}, Format: "json"},
		Serve:   job.Serve{View: job.ViewName{Schema: "public", Name: "pageviews_hourly"}},
		Replay:  job.Replay{Start: "earliest"},
		Ready:   job.ReadySettings{MaxLagTime: 5 * time.Second, StableFor: 0},
		KeepOld: time.Hour, AutoRetire: true,
	}
}

func testStaging(hash string) plan.Staging {
	return plan.Staging{
		Spec: testSpec(), Hash: hash, Dialect: 1, Engine: "duckdb 1.5.6", By: "ann", ClusterID: "c1",
		Layout: job.Layout{Shape: job.Rollup, View: []job.ViewColumn{{Name: "views", Type: "bigint", Finish: `s."views"`}}},
	}
}

func code(t *testing.T, err error) job.ExitCode {
	t.Helper()
	var r *job.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("want a refusal, got %v", err)
	}
	return r.Code
}

func mustStage(t *testing.T, s *Store, in plan.Staging) plan.Staged {
	t.Helper()
	out, err := s.Stage(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func exec(t *testing.T, pool *pg.Pool, sql string, args pgx.NamedArgs) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args); err != nil {
		t.Fatal(err)
	}
}

// makeLive is a shortcut over replay and flip.
func makeLive(t *testing.T, pool *pg.Pool, s plan.Staged) {
	t.Helper()
	args := pgx.NamedArgs{"job": string(s.Job), "number": int(s.Number), "id": s.Deployment}
	exec(t, pool, `UPDATE kappactl.version SET phase = 'standby' WHERE job = @job AND phase = 'live'`, args)
	exec(t, pool, `UPDATE kappactl.version SET phase = 'live' WHERE job = @job AND number = @number`, args)
	exec(t, pool, `UPDATE kappactl.job SET live = @number, contract = '{"columns": []}' WHERE name = @job`, args)
	exec(t, pool, `UPDATE kappactl.deployment SET state = 'observing', promoted_at = now() WHERE id = @id`, args)
}

func TestAFirstVersionIsStagedAndPromotesItself(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	got := mustStage(t, s, testStaging("aaa"))
	if got.Number != 1 || got.Nothing || got.Resumed {
		t.Errorf("staged %+v", got)
	}
	d, err := s.Deployment(t.Context(), got.Deployment)
	if err != nil {
		t.Fatal(err)
	}
	if d.Promote != "auto" || d.State != job.RollingOut || d.Phase != job.Staged || d.Previous != nil {
		t.Errorf("deployment %+v", d)
	}
	if _, done := d.Outcome(""); done {
		t.Error("a deployment that has just begun is done")
	}
}

func TestDeployOfTheSameHashResumesAndOfTheLiveOneDoesNothing(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	first := mustStage(t, s, testStaging("aaa"))
	again := mustStage(t, s, testStaging("aaa"))
	if !again.Resumed || again.Deployment != first.Deployment {
		t.Errorf("again %+v", again)
	}
	makeLive(t, pool, first)
	live := mustStage(t, s, testStaging("aaa"))
	if !live.Nothing || live.Number != 1 || live.Deployment != first.Deployment {
		t.Errorf("live %+v", live)
	}
	second := mustStage(t, s, testStaging("bbb"))
	if second.Number != 2 || second.Nothing || second.Resumed {
		t.Errorf("second %+v", second)
	}
	d, err := s.Deployment(t.Context(), second.Deployment)
	if err != nil {
		t.Fatal(err)
	}
	if d.Promote != "manual" || d.Previous == nil || *d.Previous != 1 {
		t.Errorf("second deployment %+v", d)
	}
}

func TestAJobHasOneDeploymentRollingOut(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	makeLive(t, pool, mustStage(t, s, testStaging("aaa")))
	mustStage(t, s, testStaging("bbb"))
	_, err := s.Stage(t.Context(), testStaging("ccc"))
	if code(t, err) != job.ExitConflict || !strings.Contains(err.Error(), "pageviews/v2") {
		t.Errorf("got %v", err)
	}
	var n int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM kappactl.version`).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d versions (%v): a refusal must write nothing", n, err)
	}
}

func TestARolledBackHashNeedsAgainAndThenOnlyFlips(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	makeLive(t, pool, mustStage(t, s, testStaging("aaa")))
	second := mustStage(t, s, testStaging("bbb"))
	exec(t, pool, `UPDATE kappactl.version SET phase = 'standby', rolled_back_at = now() WHERE number = 2`, nil)
	exec(t, pool, `UPDATE kappactl.deployment SET state = 'rolled_back', ended_at = now() WHERE id = @id`, pgx.NamedArgs{"id": second.Deployment})

	_, err := s.Stage(t.Context(), testStaging("bbb"))
	if code(t, err) != job.ExitConflict || !strings.Contains(err.Error(), "rolled back") {
		t.Errorf("got %v", err)
	}
	in := testStaging("bbb")
	in.Again = true
	got := mustStage(t, s, in)
	if got.Number != 2 || !got.FlipOnly || got.Deployment == second.Deployment {
		t.Errorf("again %+v", got)
	}
}

func TestARolledBackHashThatWasRetiredIsStagedAnew(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	makeLive(t, pool, mustStage(t, s, testStaging("aaa")))
	second := mustStage(t, s, testStaging("bbb"))
	exec(t, pool, `UPDATE kappactl.version SET phase = 'retired', rolled_back_at = now(), ended_at = now() WHERE number = 2`, nil)
	exec(t, pool, `UPDATE kappactl.deployment SET state = 'rolled_back', ended_at = now() WHERE id = @id`, pgx.NamedArgs{"id": second.Deployment})
	if _, err := s.Stage(t.Context(), testStaging("bbb")); code(t, err) != job.ExitConflict {
		t.Errorf("got %v", err)
	}
	in := testStaging("bbb")
	in.Again = true
	if got := mustStage(t, s, in); got.Number != 3 || got.FlipOnly {
		t.Errorf("again %+v", got)
	}
}

func TestTheStandbysHashFlipsWithoutAReplay(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	makeLive(t, pool, mustStage(t, s, testStaging("aaa")))
	makeLive(t, pool, mustStage(t, s, testStaging("bbb")))
	got := mustStage(t, s, testStaging("aaa"))
	if got.Number != 1 || !got.FlipOnly || got.Resumed {
		t.Errorf("got %+v", got)
	}
}

func TestAChangeOutsideTheHashOfTheLiveVersionWritesTheViewAnew(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	makeLive(t, pool, mustStage(t, s, testStaging("aaa")))
	in := testStaging("aaa")
	in.Spec.KeepOld = 2 * time.Hour
	if got := mustStage(t, s, in); got.Nothing || got.FlipOnly || !slices.Equal(got.Applied, []string{"keep_old"}) {
		t.Errorf("keep_old does not change the view: %+v", got)
	}
	if got := mustStage(t, s, in); !got.Nothing || len(got.Applied) > 0 {
		t.Errorf("it is in force: %+v", got)
	}
	in.Spec.Serve.Where, in.Layout.Where = "views > 0", "views > 0"
	first := mustStage(t, s, in)
	if first.Nothing || !first.FlipOnly || first.Number != 1 || !slices.Equal(first.Applied, []string{"serve.where"}) {
		t.Errorf("serve.where changes the view: %+v", first)
	}
	in.Spec.Serve.Where, in.Layout.Where = "views > 1", "views > 1"
	if got := mustStage(t, s, in); !got.Resumed || got.Deployment != first.Deployment {
		t.Errorf("the newest wish goes to the deployment that is under way: %+v", got)
	}
}

func TestStageRefusesWhatIsNotItsOwn(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	mustStage(t, s, testStaging("aaa"))
	other := testStaging("bbb")
	other.Spec.Job = "other"
	moved := testStaging("bbb")
	moved.Spec.Serve.View.Name = "elsewhere"
	cluster := testStaging("bbb")
	cluster.ClusterID = "c2"
	archives := testStaging("ccc")
	archives.Spec.Job, archives.Spec.Serve.View.Name, archives.Spec.Archive = "archives", "archived", &job.Archive{Location: "file:///a"}
	mustStage(t, s, archives)
	twice := testStaging("ddd")
	twice.Spec.Archive = &job.Archive{Location: "file:///b"}
	for name, in := range map[string]plan.Staging{
		"another job's view": other, "a moved view": moved, "another cluster": cluster, "an archive of the topic elsewhere": twice,
	} {
		if _, err := s.Stage(t.Context(), in); code(t, err) != job.ExitConflict {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var jobs int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM kappactl.job`).Scan(&jobs); err != nil || jobs != 2 {
		t.Errorf("%d jobs (%v)", jobs, err)
	}
	twice.Spec.Archive.Location = "file:///a"
	if err := s.pool.ReadOnly(t.Context(), func(tx *pg.Tx) error { return ledger.OneArchive(t.Context(), tx, twice.Spec) }); err != nil {
		t.Errorf("two jobs with one archive: %v", err)
	}
}

// stubViews is a serving view that is taken, or whose contract refuses.
type stubViews struct {
	Serving
	taken  string
	refuse error
}

func (stubViews) Preflight(context.Context, pg.DB, job.ViewName, job.Ref, job.Layout, map[string][]string) error {
	return nil
}

func (v stubViews) Taken(context.Context, pg.DB, job.ViewName) (string, error) { return v.taken, nil }
func (v stubViews) Check(json.RawMessage, job.Layout, bool) error              { return v.refuse }

func TestStageRefusesATakenNameAndAChangedContractBeforeAnyReplay(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	in := testStaging("aaa")
	in.Serving = stubViews{taken: "table"}
	if _, err := s.Stage(t.Context(), in); code(t, err) != job.ExitConflict || !strings.Contains(err.Error(), "did not make") {
		t.Errorf("got %v", err)
	}
	in.Serving = stubViews{}
	makeLive(t, pool, mustStage(t, s, in))
	in = testStaging("bbb")
	in.Serving = stubViews{refuse: &job.Refusal{Code: job.ExitUsage, Cause: `column "views" would be removed`}}
	if _, err := s.Stage(t.Context(), in); code(t, err) != job.ExitUsage {
		t.Errorf("got %v", err)
	}
}

func TestResolveNamesTheOneVersionOrListsThem(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	if _, err := s.Resolve(t.Context(), "pageviews", ledger.Promote); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("unknown job: %v", err)
	}
	makeLive(t, pool, mustStage(t, s, testStaging("aaa")))
	makeLive(t, pool, mustStage(t, s, testStaging("bbb")))
	mustStage(t, s, testStaging("ccc"))
	for verb, want := range map[ledger.Verb]job.Number{ledger.Rollback: 1, ledger.Retire: 1, ledger.Abort: 3, ledger.Pause: 3} {
		if got, err := s.Resolve(t.Context(), "pageviews", verb); err != nil || got.Number != want {
			t.Errorf("%s: %v, %v; want v%d", verb, got, err, want)
		}
	}
	if _, err := s.Resolve(t.Context(), "pageviews", ledger.Promote); code(t, err) != job.ExitConflict || !strings.Contains(err.Error(), "v3 is staged") {
		t.Errorf("promote: %v", err)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE kappactl.version SET paused_at = clock_timestamp() WHERE number = 3`); err != nil {
		t.Fatal(err)
	}
	var r *job.Refusal
	if _, err := s.Resolve(t.Context(), "pageviews", ledger.Pause); !errors.As(err, &r) || r.Code != job.ExitConflict || !strings.Contains(r.Next, "kappactl pause pageviews v1, if") {
		t.Errorf("pause with nothing but the way back: %v", err)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE kappactl.version SET paused_at = clock_timestamp() WHERE number <> 2`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(t.Context(), "pageviews", ledger.Pause); code(t, err) != job.ExitConflict || !strings.Contains(err.Error(), "v3 is staged and paused. v2 is live. v1 is standby and paused.") {
		t.Errorf("pause again: %v", err)
	}
}

func TestWhatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	mustStage(t, s, testStaging("aaa"))
	nine := job.Number(9)
	for want, ask := range map[string]func() error{
		`there is no job "pagevews"; did you mean pageviews?`: func() error { _, err := s.Status(t.Context(), "pagevews"); return err },
		`there is no job "other"`:                             func() error { _, err := s.Resolve(t.Context(), "other", ledger.Promote); return err },
		`there is no job "pagevews2"; did`:                    func() error { _, err := s.History(t.Context(), "pagevews2", &nine, 1); return err },
		`job "pageviews" has no version v9`:                   func() error { _, err := s.History(t.Context(), "pageviews", &nine, 1); return err },
	} {
		if err := ask(); !errors.Is(err, ledger.ErrNotFound) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestARequestIsAnsweredOnce(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	mustStage(t, s, testStaging("aaa"))
	if _, err := s.Ask(t.Context(), ledger.Request{Job: "pageviews", Number: 9, Verb: ledger.Abort}); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("unknown version: %v", err)
	}
	id, err := s.Ask(t.Context(), ledger.Request{Job: "pageviews", Number: 1, Verb: ledger.Abort, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := s.Answer(t.Context(), id); a != nil || err != nil {
		t.Errorf("before: %v, %v", a, err)
	}
	if err := ledger.WriteAnswer(t.Context(), pool, id, 0, ledger.Answer{Code: job.ExitChecks, Reason: reason.Refused("no"), Next: "look"}); err != nil {
		t.Fatal(err)
	}
	if err := ledger.WriteAnswer(t.Context(), pool, id, 0, ledger.Answer{}); !errors.Is(err, ledger.ErrLost) {
		t.Errorf("second answer: %v", err)
	}
	if a, err := s.Answer(t.Context(), id); err != nil || a.Code != job.ExitChecks || a.Text() != "no" || a.Next != "look" {
		t.Errorf("after: %v, %v", a, err)
	}
}

func TestStatusShowsNullForWhatIsUnknown(t *testing.T) {
	pool, _ := pgtest.New(t)
	s := NewStore(pool)
	makeLive(t, pool, mustStage(t, s, testStaging("aaa")))
	exec(t, pool, `INSERT INTO kappactl.observation (job, number, topic_id, topic, partition, sampled_at, log_start, last_stable, end_offset,
			position, lag_records, lag_seconds, read_rate, produce_rate, verdict, since)
		VALUES ('pageviews', 1, gen_random_uuid(), 'pageviews', 0, now(), 0, 90, 100, 90, 10, 1.5, 30, 10, 'ready', now()),
		       ('pageviews', 1, gen_random_uuid(), 'pageviews', 1, now(), NULL, NULL, NULL, 5, NULL, NULL, NULL, NULL, 'unknown', now())`, nil)
	st, err := s.Status(t.Context(), "pageviews")
	if err != nil {
		t.Fatal(err)
	}
	v := st.Versions[0]
	if *st.Live != "v1" || v.LagRecords != nil || v.LagSeconds != nil || v.End != nil || *v.Position != 95 {
		t.Errorf("totals of a version with an unknown partition: %+v", v)
	}
	p := v.Partitions[0]
	if *p.LagRecords != 10 || *p.HeldRecords != 10 || *p.ETASeconds != 0.5 {
		t.Errorf("partition: %+v", p)
	}
	b, err := json.Marshal(st)
	if err != nil || !strings.Contains(string(b), `"lag_records":null`) {
		t.Errorf("JSON %s (%v)", b, err)
	}
	exec(t, pool, `UPDATE kappactl.observation SET sampled_at = now() - interval '6 seconds'`, nil)
	st, err = s.Status(t.Context(), "pageviews")
	if err != nil {
		t.Fatal(err)
	}
	if v := st.Versions[0]; v.Verdict != job.Unknown || v.Partitions[0].LagRecords != nil {
		t.Errorf("an old sample must read as unknown: %+v", v)
	}
	if jobs, err := s.Jobs(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("jobs %v, %v", jobs, err)
	}
}
