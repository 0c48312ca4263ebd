package abtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/serving"
)

func TestMain(m *testing.M) { leaktest.Main(func() int { return pgtest.Run(m) }) }

const rigRows = 2000

// rig is job orders with the live version v1, the verified v2 and v3, and v4 that catches up. Each row of a version
// has its number.
type rig struct {
	t    *testing.T
	pool *pg.Pool
	dsn  string
	run  *Runner
	view job.ViewName
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pool, dsn := pgtest.New(t)
	r := &rig{t: t, pool: pool, dsn: dsn, view: job.ViewName{Schema: "public", Name: "orders"}}
	r.run = New(Deps{Pool: pool, Serving: serving.New(serving.Config{}), Log: slog.New(slog.DiscardHandler), Now: time.Now}, Config{RetryEvery: 5 * time.Millisecond})
	spec := &job.Spec{Job: "orders", Serve: job.Serve{View: r.view}}
	r.tx(func(tx *pg.Tx) error { return ledger.InsertJob(t.Context(), tx, spec, "") })
	for n, phase := range []job.Phase{1: job.Live, 2: job.Verified, 3: job.Verified, 4: job.CatchingUp} {
		if n > 0 {
			r.version(n, spec, phase)
		}
	}
	r.show(1)
	return r
}

func ordersLayout() job.Layout {
	return job.Layout{
		Shape:  job.Rollup,
		Keys:   []job.KeyColumn{{Name: "id", Type: "bigint"}},
		States: []job.StateColumn{{Name: "n", Type: "bigint", Combine: `t."n" + e."n"`, Aggregate: `sum(e."n")::bigint`}},
		View: []job.ViewColumn{
			{Name: "id", Type: "bigint", Finish: `s."id"`, Key: true},
			{Name: "n", Type: "bigint", Finish: `s."n"`},
		},
	}
}

func (r *rig) ref(n int) job.Ref { return job.Ref{Job: "orders", Number: job.Number(n)} }

func (r *rig) tx(f func(*pg.Tx) error) {
	r.t.Helper()
	if err := r.pool.ReadCommitted(r.t.Context(), f); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// version writes a version with its table, whose samples stay fresh.
func (r *rig) version(n int, spec *job.Spec, phase job.Phase) {
	r.t.Helper()
	ctx := r.t.Context()
	v := job.Version{Ref: r.ref(n), Schema: "public", Layout: ordersLayout()}
	r.tx(func(tx *pg.Tx) error {
		if err := ledger.InsertVersion(ctx, tx, ledger.NewVersion{Number: n, Hash: fmt.Sprint(n), Spec: spec, Layout: v.Layout}); err != nil {
			return err
		}
		if _, err := ledger.InsertDeployment(ctx, tx, ledger.NewDeployment{Job: "orders", Number: n}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET state = 'waiting' WHERE number = $1`, n)
		return err
	})
	tables := serving.New(serving.Config{})
	if err := errors.Join(tables.Create(ctx, r.pool, v), tables.Index(ctx, r.pool, v)); err != nil {
		r.t.Fatal(err)
	}
	r.exec(fmt.Sprintf(`INSERT INTO public.%s (id, n) SELECT i, %d FROM generate_series(1, %d) i`, v.Table(), n, rigRows))
	r.exec(fmt.Sprintf(`ANALYZE public.%s`, v.Table()))
	r.exec(`UPDATE kappactl.version SET phase = $2, verdict = 'ready' WHERE number = $1`, n, string(phase))
	r.exec(`INSERT INTO kappactl.observation (job, number, topic_id, topic, partition, sampled_at, verdict, since)
		VALUES ('orders', $1, gen_random_uuid(), 't', 0, clock_timestamp() + interval '1 day', 'ready', now())`, n)
}

// show makes the view read a version, as a flip does.
func (r *rig) show(n int) {
	r.t.Helper()
	r.tx(func(tx *pg.Tx) error {
		j, err := ledger.LockJob(r.t.Context(), tx, "orders")
		if err != nil {
			return err
		}
		c := job.ViewChange{View: r.view, To: r.ref(n), Layout: ordersLayout(), Contract: j.Contract()}
		return r.run.Serving.Switch(r.t.Context(), tx, c, func(contract json.RawMessage) error {
			return ledger.SetLive(r.t.Context(), tx, r.ref(n), contract)
		})
	})
}

// ask does an act and returns the answer.
func (r *rig) ask(verb ledger.Verb, args ledger.Args) ledger.Answer {
	r.t.Helper()
	store := ledger.NewStore(r.pool)
	id, err := store.Ask(r.t.Context(), ledger.Request{Job: "orders", Verb: verb, Args: args, By: "ann"})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.run.Answer(r.t.Context(), id, 0); err != nil {
		r.t.Fatal(err)
	}
	a, err := store.Answer(r.t.Context(), id)
	if err != nil || a == nil {
		r.t.Fatalf("no answer: %v", err)
	}
	return *a
}

func (r *rig) ok(verb ledger.Verb, args ledger.Args) {
	r.t.Helper()
	if a := r.ask(verb, args); a.Code != job.ExitOK {
		r.t.Fatalf("%s: exit %d, %s", verb, a.Code, a.Text())
	}
}

func (r *rig) refused(verb ledger.Verb, args ledger.Args, code job.ExitCode, why reason.Code) {
	r.t.Helper()
	if a := r.ask(verb, args); a.Code != code || a.Reason.Code != why || a.Next == "" {
		r.t.Errorf("%s %+v: exit %d, %s (%s), next: %q", verb, args, a.Code, a.Text(), a.Reason.Code, a.Next)
	}
}

// arms are the weights of v1, v2, …
func arms(weights ...float64) ledger.Args {
	var a ledger.Args
	for i, w := range weights {
		a.Weights = append(a.Weights, job.ArmWeight{Version: job.Number(i + 1), Weight: w})
	}
	return a
}

func sticky(a ledger.Args) ledger.Args {
	a.Assign = job.AssignSticky
	return a
}

func (r *rig) connect() *pgx.Conn {
	r.t.Helper()
	c, err := pgx.Connect(r.t.Context(), r.dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close(r.t.Context()) })
	return c
}

// reads returns the versions whose rows a subject sees in the view, and how many rows.
func (r *rig) reads(db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, from string,
) string {
	r.t.Helper()
	var versions string
	var rows int
	err := db.QueryRow(r.t.Context(), `SELECT string_agg(DISTINCT n::text, ','), count(*) FROM `+from).Scan(&versions, &rows)
	if err != nil {
		r.t.Fatalf("%s: %v", from, err)
	}
	if rows != rigRows*(1+strings.Count(versions, ",")) {
		r.t.Fatalf("%s shows %d rows of version %s", from, rows, versions)
	}
	return versions
}
