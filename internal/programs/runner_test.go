package programs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/programs"
	"github.com/kappactl/kappactl/speedlayer"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// brokers has two partitions that begin at start.
type brokers struct{ start int64 }

func topicID() job.TopicID { return job.TopicID{1} }

func (b brokers) Offsets(_ context.Context, names []string) ([]job.PartitionFacts, error) {
	var out []job.PartitionFacts
	for id := range int32(2) {
		out = append(out, job.PartitionFacts{
			Partition: job.Partition{Topic: names[0], TopicID: topicID(), ID: id}, Start: b.start, LastStable: 100, End: 100,
		})
	}
	return out, nil
}

func (brokers) GroupOffsets(context.Context, string) (map[string]int64, error) { return nil, nil }

func (brokers) CommitGroup(context.Context, string, map[job.Partition]int64) error { return nil }

// rig is a live version of a job whose program is a shell script.
type rig struct {
	t    *testing.T
	pool *pg.Pool
	dir  string
	ref  job.Ref
}

func newRig(t *testing.T, script string) *rig {
	t.Helper()
	t.Parallel()
	return newRigHere(t, script)
}

// newRigHere is newRig of a test that does not run beside others.
func newRigHere(t *testing.T, script string) *rig {
	t.Helper()
	pool, _ := pgtest.New(t)
	r := &rig{t: t, pool: pool, dir: t.TempDir(), ref: job.Ref{Job: "j", Number: 1}}
	path := filepath.Join(r.dir, "script.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	spec := job.Spec{
		Job: "j", Engine: job.ProgramRun, Source: job.Source{Topics: []string{"t"}},
		Program: &job.Program{Command: []string{path}, Instances: 1, Commit: job.CommitTable, Grace: 300 * time.Millisecond},
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`INSERT INTO kappactl.job (name, view_schema, view_name) VALUES ('j', 'public', 'j')`)
	r.exec(`INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase) VALUES ('j', 1, 'h', $1, '{}', 0, 'program', 'live')`, string(text))
	frozen := []job.Frozen{}
	for id := range int32(2) {
		frozen = append(frozen, job.Frozen{Partition: job.Partition{Topic: "t", TopicID: topicID(), ID: id}, Range: job.Range{From: 10, To: 10}})
	}
	err = pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		return programs.Engine{Steps: speedlayer.Direct{}}.Freeze(t.Context(), tx, job.Version{Ref: r.ref}, frozen)
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) text(sql string) (s string) {
	r.t.Helper()
	if err := r.pool.QueryRow(r.t.Context(), sql).Scan(&s); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// run runs the instance as an agent that has claimed it, until stop.
func (r *rig) run(b brokers, allow ...string) (stop func() error) {
	r.t.Helper()
	r.exec(`UPDATE kappactl.program SET owner = 'a', claim = claim + 1, lease = now() + interval '1 hour'`)
	var id, claim int64
	if err := r.pool.QueryRow(r.t.Context(), `SELECT id, claim FROM kappactl.program`).Scan(&id, &claim); err != nil {
		r.t.Fatal(err)
	}
	runner := programs.NewRunner(programs.Deps{
		Pool: r.pool, Positions: speedlayer.Direct{}, Brokers: b, Agent: "a", Log: slog.New(slog.NewTextHandler(r.t.Output(), nil)),
	}, programs.Config{
		Allow: allow, Temp: r.t.TempDir(), Look: 20 * time.Millisecond, First: time.Millisecond, Most: 20 * time.Millisecond,
		Lease: time.Minute,
	})
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() {
		err := runner.Run(ctx, id, claim)
		r.t.Logf("the run ended with %v", err)
		ended <- err
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	tick, late := time.NewTicker(20*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			r.t.Fatalf("%s did not happen", what)
		}
	}
}

func TestAProgramThatEndsAgainAndAgainIsAFaultWithItsLastWords(t *testing.T) {
	r := newRig(t, "echo first >&2; echo no luck >&2; exit 3\n")
	stop := r.run(brokers{}, r.dir+"/*")
	r.until("a fault", func() bool {
		return r.text(`SELECT string_agg(DISTINCT fault, ',') FROM kappactl.position`) == "program"
	})
	if got := r.text(`SELECT fault_detail FROM kappactl.position LIMIT 1`); !strings.Contains(got, "exit code 3: first | no luck") {
		t.Errorf("the fault tells %q", got)
	}
	if got := r.text(`SELECT trouble #>> '{code}' FROM kappactl.pace`); got != "program_fails" {
		t.Errorf("trouble is %q", got)
	}
	// A person's resume lets it be tried again at once, and it is counted from the beginning.
	before := r.text(`SELECT max(claim)::text FROM kappactl.position`)
	r.exec(`UPDATE kappactl.position SET fault = ''`)
	r.until("another start", func() bool { return r.text(`SELECT max(claim)::text FROM kappactl.position`) != before })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := r.text(`SELECT count(*)::text FROM kappactl.position WHERE owner IS NOT NULL`); got != "0" {
		t.Errorf("%s positions still have an owner", got)
	}
}

func TestAProgramThatIsNotAllowedIsNeverStarted(t *testing.T) {
	r := newRig(t, "touch "+filepath.Join(t.TempDir(), "started")+"\n")
	stop := r.run(brokers{}, r.dir+"/other")
	r.until("trouble", func() bool {
		return r.text(`SELECT coalesce(max(trouble #>> '{code}'), '') FROM kappactl.pace`) == "program_not_allowed"
	})
	var refusal *job.Refusal
	if err := stop(); err == nil || !errors.As(err, &refusal) || refusal.Code != job.ExitUsage {
		t.Errorf("it ended with %v", err)
	}
	if got := r.text(`SELECT coalesce(max(claim), 0)::text FROM kappactl.position`); got != "0" {
		t.Error("positions were taken")
	}
}

func TestAStoppedProgramEndsWithItsChildren(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	// Neither it nor its child takes notice of SIGTERM.
	r := newRig(t, fmt.Sprintf("trap '' TERM\nsleep 600 &\necho $$ $! > %s.new; mv %[1]s.new %[1]s\nwhile :; do wait; done\n", pids))
	stop := r.run(brokers{}, r.dir+"/*")
	r.until("its start", func() bool { _, err := os.Stat(pids); return err == nil })
	if err := stop(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	var leader, child int
	if _, err := fmt.Sscan(string(text), &leader, &child); err != nil {
		t.Fatal(err)
	}
	r.until("the end of both", func() bool {
		return syscall.Kill(leader, 0) != nil && (syscall.Kill(child, 0) != nil || zombie(child))
	})
}

// zombie reports whether a process has ended and nobody has asked how.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

func TestAProgramIsToldItsPlaceAndNothingElse(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "x")
	out := filepath.Join(t.TempDir(), "env")
	r := newRigHere(t, fmt.Sprintf("env > %s.new; mv %[1]s.new %[1]s; sleep 600\n", out))
	stop := r.run(brokers{}, r.dir+"/*")
	r.until("its environment", func() bool { _, err := os.Stat(out); return err == nil })
	if err := stop(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`KAPPACTL_START={"t/0":10,"t/1":10}`, "KAPPACTL_MODE=live", "KAPPACTL_END=\n", "KAPPACTL_CLAIM=1\n", `KAPPACTL_TABLE="public"."j__v1"`,
		"KAPPACTL_INSTANCE=0", "KAPPACTL_INSTANCES=1", "KAPPACTL_TOPICS=t", "KAPPACTL_VERSION=1\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "SECRET_TOKEN") {
		t.Error("the agent's environment is handed on")
	}
}

func TestWhatTheLogHasLostIsAFaultAndNothingIsStarted(t *testing.T) {
	r := newRig(t, "exit 0\n")
	stop := r.run(brokers{start: 12}, r.dir+"/*")
	r.until("a fault", func() bool { return r.text(`SELECT count(*)::text FROM kappactl.position WHERE fault = 'gap'`) == "2" })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := r.text(`SELECT fault_from || '-' || fault_to FROM kappactl.position LIMIT 1`); got != "10-12" {
		t.Errorf("the gap is %s", got)
	}
	if got := r.text(`SELECT last_end FROM kappactl.program`); got != "" {
		t.Errorf("the program ran: %s", got)
	}
}

func TestAdvanceMovesPositionsOrRaisesItsSQLSTATE(t *testing.T) {
	r := newRig(t, "")
	claim, _, err := speedlayer.Direct{}.Take(t.Context(), r.pool, r.ref, "a", time.Minute, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	advance := func(claim int64, positions string) (code, detail string) {
		_, err := r.pool.Exec(t.Context(), `SELECT kappactl.advance('j', 1, @claim, @positions)`,
			pgx.NamedArgs{"claim": claim, "positions": positions})
		var refused *pgconn.PgError
		if errors.As(err, &refused) {
			return refused.Code, refused.Detail
		}
		return pg.Code(err), ""
	}
	for _, c := range []struct {
		what, positions string
		claim           int64
		prepare         string
		code, detail    string
	}{
		{what: "forward", positions: `{"t/0": 20, "t/1": 15}`, claim: claim},
		{what: "where it is", positions: `{"t/0": 20}`, claim: claim},
		{what: "back", positions: `{"t/0": 19}`, claim: claim, code: "KC003"},
		{what: "no number", positions: `{"t/0": null}`, claim: claim, code: "KC003"},
		{what: "another claim", positions: `{"t/0": 30}`, claim: claim - 1, code: "KC001"},
		{what: "another partition", positions: `{"t/0": 30, "t/7": 1}`, claim: claim, code: "KC001"},
		{what: "no object", positions: `[1]`, claim: claim, code: "22023"},
		{
			what: "beyond a hold", positions: `{"t/0": 30, "t/1": 16}`, claim: claim, code: "KC002", detail: `{"t/0": 25}`,
			prepare: `UPDATE kappactl.position SET hold = 25, hold_by = 'x', hold_until = now() + interval '1 hour' WHERE partition = 0`,
		},
		{what: "up to a hold", positions: `{"t/0": 25, "t/1": 16}`, claim: claim},
		{
			what: "after a hold", positions: `{"t/0": 30}`, claim: claim,
			prepare: `UPDATE kappactl.position SET hold_until = now() - interval '1 second'`,
		},
		{what: "with a fault", positions: `{"t/0": 31}`, claim: claim, code: "KC001", prepare: `UPDATE kappactl.position SET fault = 'gap'`},
	} {
		if c.prepare != "" {
			r.exec(c.prepare)
		}
		before := r.text(`SELECT string_agg(next::text, ',' ORDER BY partition) FROM kappactl.position`)
		code, detail := advance(c.claim, c.positions)
		if code != c.code || detail != c.detail {
			t.Errorf("%s: %s %q, want %s %q", c.what, code, detail, c.code, c.detail)
		}
		if after := r.text(`SELECT string_agg(next::text, ',' ORDER BY partition) FROM kappactl.position`); code != "" && after != before {
			t.Errorf("%s: the positions moved from %s to %s", c.what, before, after)
		}
	}
	if got := r.text(`SELECT string_agg(next || '/' || records, ',' ORDER BY partition) FROM kappactl.position`); got != "30/20,16/6" {
		t.Errorf("positions and records: %s", got)
	}
}
