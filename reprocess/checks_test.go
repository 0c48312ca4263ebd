package reprocess_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
)

func sql(name, text string) job.Check { return job.Check{Name: name, SQL: text} }

func TestChecksGateTheFlip(t *testing.T) {
	w := firstLive(t, 100)
	w.sql(`CREATE DOMAIN public.verdict AS boolean`)
	s := w.stage("bbb", auto, withChecks(
		sql("passes", `SELECT (SELECT n FROM candidate) = (SELECT n FROM live)`),
		sql("ends", `SELECT true; ; -- that is all`),
		sql("is of a domain", `SELECT (n > 0)::public.verdict FROM candidate`),
		sql("is false of a domain", `SELECT (n < 0)::public.verdict FROM candidate`),
		sql("many of a domain", `SELECT false::public.verdict FROM generate_series(1, 3)`),
		job.Check{Name: "fails", SQL: `SELECT n > 1000 FROM candidate`, When: "both"},
		sql("errs", `SELECT no_such_column FROM candidate`),
		job.Check{Name: "is slow", SQL: `SELECT pg_sleep(5) IS NOT NULL`, Timeout: 20 * time.Millisecond},
		sql("writes", `WITH gone AS (DELETE FROM counts__v1 RETURNING 1) SELECT true FROM gone`),
		sql("creates", `SELECT setval(pg_get_serial_sequence('kappactl.request', 'id'), 7) = 7`),
		sql("commits", `COMMIT`),
		sql("two rows", `SELECT true FROM generate_series(1, 2)`),
		sql("no row", `SELECT true WHERE false`),
		sql("null", `SELECT max(n) > 1 FROM candidate WHERE n < 0`),
		sql("number", `SELECT n FROM candidate`),
		sql("two columns", `SELECT true, true`),
		job.Check{Name: "equal", Diff: &job.DiffLimit{}},
	))
	d := w.finish(s.Deployment, "live", job.ExitChecks)
	has(t, d.Message, `check "fails": fail: it returned false`, `check "errs": no answer: column "no_such_column" does not exist`,
		`check "is slow": no answer: no answer within 20ms`, `check "writes": no answer: it writes, and checks only read`,
		`check "creates": no answer: it writes, and checks only read: cannot execute setval() in a read-only transaction`, `check "commits": no answer: a check is a query`,
		`check "two rows": no answer: it returned 2 rows; a check returns one row with one boolean`, `check "no row": no answer: it returned 0 rows`,
		`check "null": no answer: it returned NULL`, `check "number": no answer: its value is int8; a check returns one row with one boolean`,
		`check "two columns": no answer: it returned 2 columns`,
		`check "is false of a domain": fail: it returned false`, `check "many of a domain": no answer: it returned 3 rows`)
	for _, good := range []string{"passes", "ends", "is of a domain", "equal"} {
		if strings.Contains(d.Message, `"`+good+`"`) {
			t.Errorf("check %q passed: %s", good, d.Message)
		}
	}
	if w.live() != "v1" || d.State != job.Waiting || d.Phase != job.CaughtUp {
		t.Errorf("live %s, %+v", w.live(), d)
	}
	if c := w.check(2, "equal"); c.Outcome != "pass" || c.Stage != "before" || c.Offsets["events/0"] != 100 || c.Diff == nil || c.Diff.Same != 1 {
		t.Errorf("%+v", c)
	}
	if a := w.ask(2, ledger.Promote, ledger.Args{}); a.Code != job.ExitChecks || !strings.Contains(a.Next, "then kappactl deploy FILE (nothing is replayed)") {
		t.Errorf("promote runs them again: %+v", a)
	}
	// The corrected file has the same hash: deploy goes on where it stood.
	again := w.stage("bbb", auto, withChecks(sql("passes", `SELECT true`)))
	if !again.Resumed {
		t.Fatalf("%+v", again)
	}
	w.finish(s.Deployment, "live", job.ExitOK)
}

// check is what a check of a version said last.
func (w *world) check(number int, name string) status.Check {
	w.t.Helper()
	for _, c := range w.version(number).Checks {
		if c.Name == name {
			return c
		}
	}
	w.t.Fatalf("v%d has no check %q", number, name)
	return status.Check{}
}

// twice shows every count doubled.
func twice(s *plan.Staging) { s.Layout.View[0].Finish = `s."n" * 2` }

func closeToLive(limit job.DiffLimit) job.Check {
	return job.Check{Name: "close_to_live", Diff: &limit}
}

func TestACandidateThatDiffersTooMuchIsNotPromotedAndExamplesSayWhere(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("bbb", auto, twice, withChecks(closeToLive(job.DiffLimit{MaxChanged: 0.01})))
	d := w.finish(s.Deployment, "live", job.ExitChecks)
	has(t, d.Message, `check "close_to_live": fail: 1 key changed, 0 only in v1, 0 only in v2 (100% of 1, allowed 1%)`, "[] n 100 → 200")
	has(t, d.Next, "kappactl diff counts v1 v2", "kappactl promote counts v2")
	c := w.check(2, "close_to_live")
	if c.Outcome != "fail" || c.Diff.Changed != 1 || len(c.Diff.Examples) != 1 || c.Diff.Examples[0].Kind != checks.Changed {
		t.Errorf("%+v", c)
	}
	a := w.ask(2, ledger.Promote, ledger.Args{})
	if a.Code != job.ExitChecks || w.live() != "v1" {
		t.Errorf("promote: %+v", a)
	}
	has(t, a.Text(), "close_to_live", "[] n 100 → 200")
	w.stage("bbb", auto, twice, withChecks(closeToLive(job.DiffLimit{MaxChanged: 1})))
	w.finish(s.Deployment, "live", job.ExitOK)
}

func TestAFirstVersionHasNothingToBeComparedWithAndPasses(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	s := w.stage("aaa", withChecks(closeToLive(job.DiffLimit{}), sql("as before", `SELECT (SELECT n FROM candidate) >= (SELECT n FROM live)`), sql("not empty", `SELECT n > 0 FROM candidate`)))
	w.finish(s.Deployment, "live", job.ExitOK)
	for _, name := range []string{"close_to_live", "as before"} {
		if c := w.check(1, name); c.Outcome != "pass" || c.Detail != "no live version to compare with" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if c := w.check(1, "not empty"); c.Outcome != "pass" || c.Detail != "" {
		t.Errorf("%+v", c)
	}
}

func TestALiveVersionThatIsDownIsNoAnswerUntilItIsAccepted(t *testing.T) {
	w := firstLive(t, 100)
	w.firstIsDown()
	s := w.stage("bbb", auto, withChecks(closeToLive(job.DiffLimit{}), sql("not empty", `SELECT n > 0 FROM candidate`)))
	d := w.finish(s.Deployment, "live", job.ExitChecks)
	has(t, d.Message, `check "close_to_live": no answer: v1, which is live, cannot be compared with: it stopped at`)
	has(t, d.Next, "kappactl promote counts v2 --live-is-down")
	if c := w.check(2, "not empty"); c.Outcome != "pass" {
		t.Errorf("%+v", c)
	}
	w.promoteOverFirst()
}

func TestACheckThatEndsItsConnectionIsNoAnswerAndTheOthersSayThatTheyDidNotRun(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("bbb", auto, withChecks(sql("passes", `SELECT true`), sql("crashes", `SELECT pg_terminate_backend(pg_backend_pid())`), sql("comes after", `SELECT true`)))
	d := w.finish(s.Deployment, "live", job.ExitChecks)
	has(t, d.Message, `check "crashes": no answer: the connection to PostgreSQL ended during the check`, `check "comes after": no answer: not run: the connection to PostgreSQL ended during check "crashes"`)
	if c := w.check(2, "passes"); c.Outcome != "pass" {
		t.Errorf("%+v", c)
	}
}

func TestChecksRunWithTheRightsOfTheirRole(t *testing.T) {
	w := newWorld(t, 100)
	role := "checker_" + strings.ReplaceAll(w.database(), "-", "_")
	w.sql(`CREATE ROLE ` + pgx.Identifier{role}.Sanitize())
	defer w.sql(`DROP ROLE ` + pgx.Identifier{role}.Sanitize())
	w.config.ChecksRole = role
	firstLiveFor(t, w)
	s := w.stage("bbb", auto, withChecks(
		sql("is nobody", `SELECT current_user = '`+role+`' FROM candidate, live`), closeToLive(job.DiffLimit{}),
		sql("looks elsewhere", `SELECT count(*) > 0 FROM kappactl.version`),
	))
	d := w.finish(s.Deployment, "live", job.ExitChecks)
	has(t, d.Message, `check "looks elsewhere": no answer: permission denied for schema kappactl`)
	for _, name := range []string{"is nobody", "close_to_live"} {
		if c := w.check(2, name); c.Outcome != "pass" {
			t.Errorf("%+v", c)
		}
	}
}

// TestNothingThatACheckRunsLeavesItsRole: a check that could put its role off would read what the agent may read.
func TestNothingThatACheckRunsLeavesItsRole(t *testing.T) {
	w := newWorld(t, 100)
	role := "prisoner_" + strings.ReplaceAll(w.database(), "-", "_")
	w.sql(`CREATE ROLE ` + pgx.Identifier{role}.Sanitize())
	defer w.sql(`DROP ROLE ` + pgx.Identifier{role}.Sanitize())
	w.sql(`CREATE TABLE public.secret AS SELECT 1 AS x`)
	w.config.ChecksRole = role
	firstLiveFor(t, w)
	const reads = ` AND query_to_xml('SELECT * FROM public.secret', true, true, '') IS NOT NULL`
	escapes := map[string]job.Check{
		"role":          sql("", `SELECT set_config('role', 'none', true) IS NOT NULL`+reads),
		"back again":    sql("", `SELECT set_config('role', session_user, false) IS NOT NULL`+reads),
		"authorization": sql("", `SELECT set_config('session_authorization', session_user, true) IS NOT NULL`+reads),
		"called":        sql("", `SELECT query_to_xml($$SELECT set_config('role', 'none', true)$$, true, true, '') IS NOT NULL`+reads),
		"compared":      {Diff: &job.DiffLimit{DiffHow: job.DiffHow{Where: `set_config('role', 'none', true) IS NOT NULL` + reads}}},
		"looks":         sql("", `SELECT true`+reads),
	}
	checks := []job.Check{sql("locks", `SELECT pg_advisory_lock(4711) IS NOT NULL`), sql("is itself", `SELECT current_user = '`+role+`' FROM candidate, live`)}
	for name, k := range escapes {
		k.Name = name
		checks = append(checks, k)
	}
	s := w.stage("bbb", auto, withChecks(checks...))
	w.finish(s.Deployment, "live", job.ExitChecks)
	for name := range escapes {
		want := "within security-definer function"
		if name == "looks" {
			want = "permission denied for table secret"
		}
		if c := w.check(2, name); c.Outcome != "no answer" || !strings.Contains(c.Detail, want) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, name := range []string{"locks", "is itself"} {
		if c := w.check(2, name); c.Outcome != "pass" {
			t.Errorf("%+v", c)
		}
	}
	var free bool
	if err := w.pool.QueryRow(t.Context(), `SELECT NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711)`).Scan(&free); err != nil || !free {
		t.Errorf("a check's lock outlives it (%v)", err)
	}
}

// TestSQLOfAJobFileBringsNoOtherStatement: a condition that is changed in place is not proved again before checks read it.
func TestSQLOfAJobFileBringsNoOtherStatement(t *testing.T) {
	w := firstLive(t, 100)
	s := w.stage("bbb", auto, withChecks(sql("fails", `SELECT false`)))
	w.finish(s.Deployment, "live", job.ExitChecks)
	for _, text := range []string{"true\n); CREATE TABLE public.injected (x integer); SELECT (true", "true\n); COMMIT; CREATE TABLE public.injected (x integer); SELECT (true"} {
		again := w.stage("bbb", auto, withChecks(sql("passes", `SELECT true`)), func(in *plan.Staging) { in.Layout.Where = text })
		if d := w.finish(again.Deployment, "live", job.ExitChecks); !strings.Contains(d.Message, "no answer") {
			t.Errorf("%q: %s", text, d.Message)
		}
	}
	var made bool
	if err := w.pool.QueryRow(t.Context(), `SELECT to_regclass('public.injected') IS NOT NULL`).Scan(&made); err != nil || made || w.live() != "v1" {
		t.Errorf("made: %v, live %s (%v)", made, w.live(), err)
	}
}

// TestWhatTheRoleOfChecksLacksIsNamed: PostgreSQL has one code for both, and words in its own language.
func TestWhatTheRoleOfChecksLacksIsNamed(t *testing.T) {
	w := newWorld(t, 100)
	role := "hardened_" + strings.ReplaceAll(w.database(), "-", "_")
	ident, database := pgx.Identifier{role}.Sanitize(), pgx.Identifier{w.database()}.Sanitize()
	w.sql(`CREATE ROLE ` + ident)
	defer w.sql(`DROP ROLE ` + ident)
	w.sql(`REVOKE TEMPORARY ON DATABASE ` + database + ` FROM PUBLIC`)
	w.config.ChecksRole = role
	firstLiveFor(t, w)
	s := w.stage("bbb", auto, withChecks(sql("passes", `SELECT true`)))
	d := w.finish(s.Deployment, "live", job.ExitChecks)
	has(t, d.Message, `check "passes": no answer: `, `role `+ident+` runs checks and may not create temporary objects: GRANT TEMPORARY ON DATABASE `+database+` TO `+ident)
	w.sql(`GRANT TEMPORARY ON DATABASE ` + database + ` TO PUBLIC`)
	w.sql(`REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC`)
	a := w.ask(2, ledger.Promote, ledger.Args{})
	has(t, a.Text(), `check "passes": no answer: `, `role `+ident+` runs checks and may not use the language`, `: GRANT USAGE ON LANGUAGE plpgsql TO `+ident)
	w.sql(`GRANT USAGE ON LANGUAGE plpgsql TO ` + ident)
	defer w.sql(`REVOKE USAGE ON LANGUAGE plpgsql FROM ` + ident)
	w.must(2, ledger.Promote, ledger.Args{})
}

func (w *world) database() (name string) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
		w.t.Fatal(err)
	}
	return name
}
