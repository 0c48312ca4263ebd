package abtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// inSQL are the arms that the SQL function gives to subjects, under a control schema of any name.
func inSQL(t *testing.T, pool *pg.Pool, run int, arms []string, weights []int, coverage int, subjects []string) []string {
	t.Helper()
	out, err := pg.Collect(t.Context(), pool, pgx.RowTo[string], `SELECT coalesce(kappactl.arm_of(
			ROW('orders', $1::integer, $2::text[], $3::integer[], $4::integer, false, false, 1)::kappactl.route, s), 'none')
		FROM unnest($5::text[]) WITH ORDINALITY AS u(s, i) ORDER BY i`, run, arms, weights, coverage, subjects)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGoAndSQLChooseTheSameArms(t *testing.T) {
	t.Parallel()
	renamed, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.Empty(t), Schema: "other"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(renamed.Close)
	if err := pg.Migrate(t.Context(), renamed, "test"); err != nil {
		t.Fatal(err)
	}
	pool, _ := pgtest.New(t)
	for i, p := range []*pg.Pool{pool, renamed} {
		names, weights, coverage := []string{"v1", "v2", "v3"}, []int{500_000, 300_000, 200_000}, 700_000
		var subjects []string
		for n := range 50_000 {
			subjects = append(subjects, strings.Repeat("日本 é:'", n%3)+fmt.Sprintf("u%d", n*(i+1)))
		}
		in := 0
		for n, got := range inSQL(t, p, 3, names, weights, coverage, subjects) {
			want := "none"
			if policy.Bucket(policy.GateSalt("orders", "3"), subjects[n]) < coverage {
				want = names[policy.ArmOf(policy.Cuts(weights), policy.Bucket(policy.ArmSalt("orders", "3"), subjects[n]))]
				in++
			}
			if got != want {
				t.Fatalf("%q: %s in SQL, %s in Go", subjects[n], got, want)
			}
		}
		if in < 34_000 || in > 36_000 {
			t.Errorf("%d of 50,000 subjects are in an experiment of 70 %%", in)
		}
	}
}

// as runs f in a transaction with a setting.
func (r *rig) as(setting, value string, f func(pgx.Tx)) {
	r.t.Helper()
	err := pgx.BeginFunc(r.t.Context(), r.connect(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(r.t.Context(), `SELECT set_config($1, $2, true)`, setting, value); err != nil {
			return err
		}
		f(tx)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// of returns the version that a subject reads, in the view and through the function.
func (r *rig) of(subject string) (version string) {
	r.t.Helper()
	r.as("kappactl.subject", subject, func(tx pgx.Tx) {
		version = r.reads(tx, "orders")
		if by := r.reads(tx, "orders_for('"+subject+"')"); by != version {
			r.t.Errorf("%s reads v%s in the view and v%s from the function", subject, version, by)
		}
	})
	return version
}

func TestEverySubjectReadsOneArm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(ledger.ABStart, arms(.5, .3, .2))
	for n := range 20 {
		subject := fmt.Sprintf("u%d", n)
		want := policy.ArmOf([]int{500_000, 800_000, 1_000_000}, policy.Bucket("orders:1", subject)) + 1
		if got := r.of(subject); got != fmt.Sprint(want) {
			t.Errorf("%s reads v%s, not v%d", subject, got, want)
		}
	}
	if got := r.reads(r.connect(), "orders"); got != "1" {
		t.Errorf("a reader without a subject reads v%s", got)
	}
	if got := r.reads(r.connect(), "orders_for(NULL)") + r.reads(r.connect(), "orders_for('')"); got != "11" {
		t.Errorf("no subject reads v%s from the function", got)
	}
	if got := r.reads(r.connect(), "orders__arms"); got != "1,2,3" {
		t.Errorf("the view of all arms shows %s", got)
	}
	r.as("kappactl.pin_orders", "v3", func(tx pgx.Tx) {
		if got := r.reads(tx, "orders"); got != "3" {
			t.Errorf("pinned to v3 it reads v%s", got)
		}
	})
	r.as("kappactl.pin_orders", "v9", func(tx pgx.Tx) {
		_, err := tx.Exec(t.Context(), "SAVEPOINT s; SELECT count(*) FROM orders")
		if pg.Code(err) != "22023" || !strings.Contains(pg.Message(err), "v9 is not an arm") {
			t.Errorf("an unknown pin: %v", err)
		}
		_, _ = tx.Exec(t.Context(), "ROLLBACK TO s")
	})
}

func TestOutsideCoverageReadersReadTheControl(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	share := .5
	a := arms(0, 1)
	a.Coverage = &share
	r.ok(ledger.ABStart, a)
	for n := range 20 {
		subject := fmt.Sprintf("u%d", n)
		want := "1"
		if policy.Bucket("orders:1:gate", subject) < 500_000 {
			want = "2"
		}
		if got := r.of(subject); got != want {
			t.Errorf("%s reads v%s, not v%s", subject, got, want)
		}
		if got := r.expose(subject); got != "v"+want {
			t.Errorf("%s is exposed to %s, not v%s", subject, got, want)
		}
	}
	s := r.status()
	if s.Arms[0].Subjects != 0 || s.Arms[1].Subjects == 0 || s.Arms[1].Subjects == 20 || s.Coverage != .5 {
		t.Errorf("recorded: %+v", s)
	}
}

func (r *rig) expose(subject string) (arm string) {
	r.t.Helper()
	if err := r.pool.QueryRow(r.t.Context(), `SELECT coalesce(kappactl.expose('orders', $1), 'none')`, subject).Scan(&arm); err != nil {
		r.t.Fatal(err)
	}
	return arm
}

func (r *rig) status() Status {
	r.t.Helper()
	s, err := Store{}.Status(r.t.Context(), r.pool, "orders")
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func TestAStickySubjectKeepsItsArm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(ledger.ABStart, sticky(arms(1, 0)))
	if got := r.expose("known") + r.of("known"); got != "v11" {
		t.Errorf("it reads %s", got)
	}
	r.ok(ledger.ABWeights, arms(0, 1))
	if got := r.expose("known") + r.of("known") + r.expose("new") + r.of("new"); got != "v11v22" {
		t.Errorf("after the weights moved, known and new read %s", got)
	}
	r.ok(ledger.ABPause, ledger.Args{})
	if got := r.of("new") + r.expose("other"); got != "1v1" {
		t.Errorf("paused, they read %s", got)
	}
	r.ok(ledger.ABResume, ledger.Args{Accept: "it was nothing"})
	if got := r.of("new") + r.of("known"); got != "21" {
		t.Errorf("resumed, they read %s", got)
	}
	s := r.status()
	if s.Epoch != 2 || s.Arms[0].Subjects != 1 || s.Arms[1].Subjects != 1 || s.SampleRatio.Impossible {
		t.Errorf("status: %+v", s)
	}
	n, err := Store{}.Forget(t.Context(), r.pool, "orders", "known", "ann")
	if err != nil || n != 1 || r.of("known") != "2" {
		t.Errorf("forgotten: %d rows, %v; it reads v%s", n, err, r.of("known"))
	}
	r.ok(ledger.ABStop, ledger.Args{})
	if got := r.expose("new"); got != "none" {
		t.Errorf("without an experiment a subject is exposed to %s", got)
	}
	found, err := Store{}.Decisions(t.Context(), r.pool, "orders")
	if err != nil || len(found) != 5 {
		t.Fatalf("%d decisions, %v", len(found), err)
	}
	var verdicts []string
	for _, d := range found {
		verdicts = append(verdicts, fmt.Sprintf("%s/%d", d.Verdict, d.Epoch))
	}
	if got := strings.Join(verdicts, " "); got != "end/2 resume/2 pause/2 weights/2 start/1" {
		t.Errorf("decisions: %s", got)
	}
}

// Two clients record one subject at the same time while the weights move: both get the arm of whoever came first.
func TestTwoExposuresOfOneSubjectAgree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(ledger.ABStart, sticky(arms(1, 0)))
	first, second := r.connect(), r.connect()
	if _, err := first.Exec(t.Context(), `BEGIN; SELECT kappactl.expose('orders', 'u1')`); err != nil {
		t.Fatal(err)
	}
	r.ok(ledger.ABWeights, arms(0, 1))
	got := make(chan string, 1)
	go func() {
		var arm string
		if err := second.QueryRow(t.Context(), `SELECT kappactl.expose('orders', 'u1')`).Scan(&arm); err != nil {
			arm = err.Error()
		}
		got <- arm
	}()
	for len(r.waiting()) == 0 && len(got) == 0 {
		if retry.Sleep(t.Context(), time.Millisecond) != nil {
			t.Fatal("nobody waits")
		}
	}
	if _, err := first.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if arm := <-got; arm != "v1" {
		t.Errorf("the second client got %s", arm)
	}
}

// waiting are the sessions of this database that wait for a lock.
func (r *rig) waiting() []int {
	r.t.Helper()
	out, err := pg.Collect(r.t.Context(), r.pool, pgx.RowTo[int],
		`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// A role that may only read the view and nothing of the control schema reads its arm, also where the view checks its
// rights.
func TestReadersNeedNothingOnTheControlSchema(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"", "ALTER VIEW orders SET (security_invoker = true); GRANT SELECT ON orders__v1 TO ab_reader"} {
		r := newRig(t)
		r.exec(`DO $$ BEGIN CREATE ROLE ab_reader; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
		r.exec(`GRANT SELECT ON orders TO ab_reader`)
		if options != "" {
			r.exec(options)
		}
		r.ok(ledger.ABStart, arms(0, 1))
		c := r.connect()
		if _, err := c.Exec(t.Context(), `SET ROLE ab_reader; SELECT set_config('kappactl.subject', 'u1', false)`); err != nil {
			t.Fatal(err)
		}
		if got := r.reads(c, "orders") + r.reads(c, "orders_for('u1')") + r.reads(c, "orders__arms"); got != "221,2" {
			t.Errorf("the role reads %s", got)
		}
		if _, err := c.Exec(t.Context(), `SELECT kappactl.expose('orders', 'u1')`); pg.Code(err) != "42501" {
			t.Errorf("a reader may record exposures: %v", err)
		}
		r.ok(ledger.ABStop, ledger.Args{})
		if got := r.reads(c, "orders"); got != "1" {
			t.Errorf("after the end the role reads %s", got)
		}
	}
}

// A reader in REPEATABLE READ sees its default while it cannot see the route: no error and no empty result.
func TestOlderSnapshotsReadTheControl(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	open := func() pgx.Tx {
		c := r.connect()
		if _, err := c.Exec(t.Context(), `SELECT set_config('kappactl.subject', 'u1', false)`); err != nil {
			t.Fatal(err)
		}
		tx, err := c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SELECT 1 FROM pg_class LIMIT 1"); err != nil { // takes the snapshot, no lock on the view
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
		return tx
	}
	before := open()
	r.ok(ledger.ABStart, arms(0, 1))
	if got := r.reads(before, "orders"); got != "1" {
		t.Errorf("a snapshot from before the start reads v%s", got)
	}
	_ = before.Rollback(t.Context())
	first := open()
	r.ok(ledger.ABStop, ledger.Args{})
	r.ok(ledger.ABStart, arms(0, 1))
	if got := r.reads(first, "orders"); got != "1" {
		t.Errorf("a snapshot from the run before reads v%s", got)
	}
	_ = first.Rollback(t.Context())
	last := open()
	r.ok(ledger.ABStop, ledger.Args{})
	if got := r.reads(last, "orders"); got != "1" {
		t.Errorf("a snapshot from before the end reads v%s", got)
	}
}

func TestTheJobFilesWeightsAreUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`UPDATE kappactl.version SET spec = spec || '{"experiment": {"weights": [{"version": 3, "weight": 0.25}, {"version": 1, "weight": 0.75}],
		"coverage": 0.5, "assign": "sticky"}}' WHERE number = 3`)
	r.ok(ledger.ABStart, ledger.Args{})
	s := r.status()
	if len(s.Arms) != 2 || s.Arms[0].Version != "v1" || s.Arms[0].Weight != .75 || s.Arms[1].Version != "v3" || s.Coverage != .5 || s.Assign != job.AssignSticky {
		t.Errorf("%+v", s)
	}
}

// Through a pooler in transaction mode, with statements that are not prepared, a subject stays in its transaction: the
// next client on the same connection reads the control, while experiments come and go.
func TestSubjectsDoNotLeakThroughAPooler(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	through := pgtest.Bouncer(t, r.dsn, 1)
	client := func() *pgx.Conn {
		c, err := pgx.ParseConfig(through)
		if err != nil {
			t.Fatal(err)
		}
		c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	named, nameless := client(), client()
	for range 3 {
		r.ok(ledger.ABStart, arms(0, 1))
		err := pgx.BeginFunc(t.Context(), named, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SET LOCAL kappactl.subject = 'u1'`); err != nil {
				return err
			}
			if got := r.reads(tx, "orders"); got != "2" {
				t.Errorf("u1 reads v%s", got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.reads(nameless, "orders") + r.reads(nameless, "orders_for('u1')"); got != "12" {
			t.Errorf("the next client reads %s", got)
		}
		r.ok(ledger.ABStop, ledger.Args{})
		if got := r.reads(nameless, "orders"); got != "1" {
			t.Errorf("after the end it reads v%s", got)
		}
	}
}
