package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/reprocess/status"
)

// found is the one finding of f.
func found(t *testing.T, f func(e *examination)) Finding {
	t.Helper()
	e := &examination{}
	f(e)
	if len(e.findings) != 1 {
		t.Fatalf("findings: %+v", e.findings)
	}
	if got := e.findings[0]; (got.Health == OK) != (got.Next == nil) {
		t.Errorf("a finding without a cure, or a cure without a finding: %+v", got)
	}
	return e.findings[0]
}

// TestALogThatStartsLateIsNoWorryWhenOnlyTheKeptTimeMustBeCovered takes a log that has lost its first 60 offsets.
func TestALogThatStartsLateIsNoWorryWhenOnlyTheKeptTimeMustBeCovered(t *testing.T) {
	p := job.Partition{Topic: "clicks", TopicID: job.TopicID{1}}
	topics := []job.TopicFacts{
		{Name: p.Topic, ID: p.TopicID, Partitions: []job.PartitionFacts{{Partition: p, Start: 60, End: 100}}},
	}
	positions := []job.Position{{Partition: p, Next: 100}}
	byRecord, byOther := &job.Keep{Column: "at", ByRecord: true}, &job.Keep{Column: "departs"}
	for name, c := range map[string]struct {
		kept   map[job.Partition]int64
		keep   *job.Keep
		health Health
		says   string
		next   string
	}{
		"everything is kept": {nil, nil, Warning, "60 offsets of 1 partition", "set serve.keep"},
		"the kept time begins later": {
			map[job.Partition]int64{p: 80}, byRecord, OK, "of the time that it keeps", "",
		},
		"the kept time begins with the log": {
			map[job.Partition]int64{p: 60}, byRecord, OK, "of the time that it keeps", "",
		},
		"where the kept time begins is unknown": {
			map[job.Partition]int64{}, byRecord, Warning, "60 offsets of 1 partition", "make serve.keep shorter",
		},
		"the kept time is not that of records": {nil, byOther, Warning, "serve.keep goes by departs", "keep the log"},
	} {
		got := found(t, func(e *examination) {
			e.compareLog(t.Context(), "log of clicks", job.Ref{Job: "clicks", Number: 1}, logFacts{
				topics, positions, c.kept, c.keep,
			})
		})
		if got.Health != c.health || !strings.Contains(got.Detail, c.says) || c.next != "" &&
			!strings.HasPrefix(*got.Next, c.next) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAVersionThatDoesNotGoOnIsNamedWithItsCause(t *testing.T) {
	got := found(t, func(e *examination) {
		e.versions(status.Job{Job: "clicks", Versions: []status.Version{
			{Version: "v3", Phase: job.CatchingUp, Verdict: job.Stalled, Reason: "paused", Paused: true},
			{Version: "v2", Phase: job.Live, Verdict: job.Stalled, Reason: "agent a1 cannot commit results: disk full"},
			{Version: "v1", Phase: job.Standby, Verdict: job.Ready},
		}})
	})
	if got.Check != "clicks v2" || got.Health != Failed ||
		got.Detail != "live, stalled: agent a1 cannot commit results: disk full" {
		t.Errorf("%+v", got)
	}
}

// TestClocksThatAreApartAreWarnedOf: the time that the question itself took is no difference.
func TestClocksThatAreApartAreWarnedOf(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		theirs, took time.Duration
		health       Health
		says         string
	}{
		{0, 0, OK, "0s from"},
		{2 * time.Second, 0, OK, "2s from"},
		{-2001 * time.Millisecond, 0, Warning, "2s away"},
		{time.Hour, 10 * time.Millisecond, Warning, "1h away"},
		{4 * time.Second, 3 * time.Second, OK, "2.5s from"},
	} {
		got := found(t, func(e *examination) { e.clock(began.Add(c.theirs), began, c.took) })
		if got.Health != c.health || !strings.Contains(got.Detail, c.says) {
			t.Errorf("%s away, answered in %s: %+v", c.theirs, c.took, got)
		}
	}
}

// TestWhatTheRoleLacksIsSaidWithTheGrant: also for names that must be quoted.
func TestWhatTheRoleLacksIsSaidWithTheGrant(t *testing.T) {
	full := serverFacts{
		Version: 160000, Printed: "16.4", Database: "my db", Role: "Reader", Agents: true, Asks: true, Temporary: true,
		Stats:    true,
		settings: settings{Encoding: "UTF8", Statement: "0", Transaction: "0"},
	}
	look := func(change func(*serverFacts), direct bool) string {
		facts := full
		change(&facts)
		e := &examination{}
		e.server(facts, direct)
		var lines []string
		for _, f := range e.findings {
			line := f.Check + " " + string(f.Health) + ": " + f.Detail
			if f.Next != nil {
				line += "; next: " + *f.Next
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	for name, c := range map[string]struct {
		change func(*serverFacts)
		direct bool
		says   []string
		not    string
	}{
		"all is well": {
			func(*serverFacts) {}, true, []string{"database ok: PostgreSQL 16.4", "pooler ok: none in between"}, string(Warning),
		},
		"a pooler": {
			func(*serverFacts) {}, false,
			[]string{"pooler ok: a connection pooler is in between", "transaction mode works"},
			string(Warning),
		},
		"no temporary tables": {
			func(f *serverFacts) { f.Temporary = false }, true,
			[]string{"temporary tables warning: role Reader may not", `next: GRANT TEMPORARY ON DATABASE "my db" TO "Reader"`},
			"statistics",
		},
		"no statistics": {
			func(f *serverFacts) { f.Stats = false }, true,
			[]string{"statistics warning", `next: GRANT pg_read_all_stats TO "Reader"`},
			"temporary",
		},
		"a role that only looks": {
			func(f *serverFacts) {
				f.Agents, f.Asks, f.Temporary, f.Stats, f.Agent = false, false, false, false, "agents"
			}, true,
			[]string{
				"temporary tables ok: role Reader",
				"statistics ok: role Reader does not see other sessions; only agents, role agents, need that",
			},
			string(Warning),
		},
		"another encoding": {
			func(f *serverFacts) { f.Encoding = "SQL_ASCII" }, true,
			[]string{"database failed: database my db has encoding SQL_ASCII", "ENCODING 'UTF8'"},
			"database ok",
		},
		"read-only": {
			func(f *serverFacts) { f.Unwritable = true }, true,
			[]string{"writes failed", `next: ALTER ROLE "Reader" IN DATABASE "my db" SET default_transaction_read_only = off`},
			"standby",
		},
		"a standby": {
			func(f *serverFacts) { f.Unwritable, f.Standby = true, true }, true,
			[]string{"writes failed: the server is a standby", "target_session_attrs"},
			"ALTER",
		},
		"relaxed commits": {
			func(f *serverFacts) { f.Relaxed = true }, true,
			[]string{"durability warning", "SET synchronous_commit = on"},
			string(Failed),
		},
		"a role's timeout": {
			func(f *serverFacts) { f.Statement = "30s" }, true,
			[]string{"timeouts warning: statement_timeout is 30s", "SET statement_timeout = 0"},
			"transaction_timeout",
		},
		"an old server": {
			func(f *serverFacts) { f.Version = 140012 }, true,
			[]string{"database failed", "next: upgrade PostgreSQL to 15 or later"},
			"database ok",
		},
	} {
		got := look(c.change, c.direct)
		for _, want := range c.says {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, got)
			}
		}
		if strings.Contains(got, c.not) {
			t.Errorf("%s says %s:\n%s", name, c.not, got)
		}
	}
}

// TestTheRoleOfChecksIsLookedAt: what it lacks is said with the statement that gives it.
func TestTheRoleOfChecksIsLookedAt(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Fatal(err)
		}
	}
	var database string
	if err := pool.QueryRow(t.Context(), "SELECT current_database()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	role := "doctored_" + database
	look := func() Finding {
		return found(t, func(e *examination) {
			e.pool, e.settings.Checks.Role = pool, role
			e.checks(t.Context())
		})
	}
	if got := look(); got.Health != Failed || !strings.HasPrefix(*got.Next, "CREATE ROLE "+pg.Ident(role)) {
		t.Errorf("no such role: %+v", got)
	}
	exec("CREATE ROLE " + pg.Ident(role))
	t.Cleanup(func() { exec("DROP ROLE " + pg.Ident(role)) })
	exec("REVOKE TEMPORARY ON DATABASE " + pg.Ident(database) + " FROM PUBLIC")
	if got := look(); got.Health != Failed || *got.Next != "GRANT TEMPORARY ON DATABASE "+pg.Ident(database)+" TO "+
		pg.Ident(role) {
		t.Errorf("no temporary objects: %+v", got)
	}
	exec("GRANT TEMPORARY ON DATABASE " + pg.Ident(database) + " TO PUBLIC")
	exec("REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC")
	if got := look(); got.Health != Failed || *got.Next != "GRANT USAGE ON LANGUAGE plpgsql TO "+pg.Ident(role) {
		t.Errorf("no PL/pgSQL: %+v", got)
	}
	exec("GRANT USAGE ON LANGUAGE plpgsql TO PUBLIC")
	if got := look(); got.Health != OK {
		t.Errorf("all it needs: %+v", got)
	}
}

// TestAgentsWithOtherHooksAreAWarning: whom a promote asks must not depend on which agent does it.
func TestAgentsWithOtherHooksAreAWarning(t *testing.T) {
	gate := map[string]string{"gate": "1"}
	for _, c := range []struct {
		living []agent.Living
		health Health
		says   string
	}{
		{[]agent.Living{{ID: "a", Hooks: gate}, {ID: "b", Hooks: gate}}, OK, "gate, the same on every agent"},
		{[]agent.Living{{ID: "a", Hooks: map[string]string{}}}, OK, "none"},
		{[]agent.Living{{ID: "a"}, {ID: "b", Hooks: gate}}, OK, "gate"}, // a is of a release that does not say
		{[]agent.Living{{ID: "a", Hooks: gate}, {ID: "b", Hooks: map[string]string{}}}, Warning, "gate is missing on b"},
		{
			[]agent.Living{{ID: "a", Hooks: gate}, {ID: "b", Hooks: map[string]string{"gate": "2"}}},
			Warning,
			"gate differs on a, b",
		},
	} {
		got := found(t, func(e *examination) { e.hooks(c.living) })
		if got.Health != c.health || !strings.Contains(got.Detail, c.says) || (got.Next != nil) != (c.health == Warning) {
			t.Errorf("%+v: %+v", c.living, got)
		}
	}
}
