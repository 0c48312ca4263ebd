package reprocess_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/engine"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

// world is a database, a cluster, workers and controllers of one test.
type world struct {
	t       *testing.T
	pool    *pg.Pool
	dsn     string
	store   *reprocess.Store
	brokers *brokers
	views   *serving.Store
	config  reprocess.Config
	idle    map[int]bool // versions on which no worker works; guarded by mu
	mu      sync.Mutex
	alone   bool // run starts no worker: the test has one
	hooks   reprocess.Hooks
	keyed   bool // the table has a row a partition, keyed by p; set before run
	tardy   bool // workers leave versions behind one another for a moment; set before run
}

// newWorld lets the test run beside others: most of its time it waits.
func newWorld(t *testing.T, ends ...int64) *world {
	t.Helper()
	t.Parallel()
	pool, dsn := pgtest.New(t)
	return &world{
		t: t, pool: pool, dsn: dsn, store: reprocess.NewStore(pool), brokers: newBrokers(ends...), views: serving.New(serving.Config{}),
		config: reprocess.Config{
			Tick: 20 * time.Millisecond, RetryEvery: 20 * time.Millisecond, PollEvery: 5 * time.Millisecond,
		},
		idle: map[int]bool{},
	}
}

func (w *world) controller() *reprocess.Controller {
	s := &speedlayer.Store{}
	return reprocess.NewController(reprocess.Deps{
		Pool: w.pool, Brokers: w.brokers, Speed: s, Engines: engine.Set{job.SQL: s}, Serving: w.views, Hooks: w.hooks,
		Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)), Now: time.Now, Rand: rand.New(rand.NewPCG(1, 2)),
	}, w.config)
}

// layout counts offsets: one row without keys, so the view must show the sum of the positions.
func layout() job.Layout {
	return job.Layout{
		Shape:  job.Rollup,
		States: []job.StateColumn{{Name: "n", Type: "bigint", Combine: `t."n" + e."n"`, Aggregate: `sum(e."n")::bigint`}},
		View:   []job.ViewColumn{{Name: "n", Type: "bigint", Finish: `s."n"`, StoredAs: "sum", Exact: true}},
	}
}

func (w *world) spec() *job.Spec {
	return &job.Spec{
		Job: "counts", Mode: job.Kappa, Source: job.Source{Topics: []string{"events"}, Format: "json", OnError: job.OnError{Max: 0.01}},
		Serve: job.Serve{View: job.ViewName{Schema: "public", Name: "counts"}}, Replay: job.Replay{Start: "earliest"},
		Ready: job.ReadySettings{MaxLagTime: 5 * time.Second}, KeepOld: time.Hour, AutoRetire: true,
	}
}

// stage stages a version with this hash; change may alter the staging.
func (w *world) stage(hash string, change ...func(*plan.Staging)) plan.Staged {
	w.t.Helper()
	out, err := w.tryStage(hash, change...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) tryStage(hash string, change ...func(*plan.Staging)) (plan.Staged, error) {
	in := plan.Staging{Spec: w.spec(), Layout: layout(), Hash: hash, Dialect: 1, Engine: "test", ClusterID: "c", By: "ann", Serving: w.views}
	for _, f := range change {
		f(&in)
	}
	return w.store.Stage(w.t.Context(), in)
}

// run runs agents of our own until the test ends: they claim deployments and requests and work on versions.
func (w *world) run(n int, hook func(agent int, point string)) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var g errgroup.Group
	if !w.alone {
		g.Go(func() error { w.work(ctx); return nil })
	}
	for i := range n {
		c := w.controller()
		if hook != nil {
			c.SetHook(func(point string) { hook(i, point) })
		}
		g.Go(func() error { w.host(ctx, c, fmt.Sprintf("agent %d", i), time.Hour); return nil })
	}
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); _ = g.Wait() }) }
	w.t.Cleanup(stop)
	return stop
}

// host is a small agent: one goroutine a claim.
func (w *world) host(ctx context.Context, c *reprocess.Controller, owner string, ttl time.Duration) {
	type row struct{ ID, Claim int64 }
	var g errgroup.Group
	defer func() { _ = g.Wait() }()
	for every(ctx, 10*time.Millisecond) {
		for table, f := range map[string]func(context.Context, int64, int64) error{"deployment": c.Control, "request": c.Answer} {
			where := `r.answered_at IS NULL`
			if table == "deployment" {
				where = `r.id = (SELECT max(n.id) FROM kappactl.deployment n WHERE n.job = r.job AND n.number = r.number)
					AND EXISTS (SELECT 1 FROM kappactl.version v WHERE v.job = r.job AND v.number = r.number AND v.ended_at IS NULL)`
			}
			lease := pg.Leased{Table: "kappactl." + table, Key: "id", Order: "r.id", Columns: "r.id, r.claim"}
			// Not cut short by the end of ctx: a claim in doubt would keep the row for the whole lease.
			rows, err := pg.Claim[row](context.WithoutCancel(ctx), w.pool, lease, owner, ttl, 10, where, nil)
			if err != nil && ctx.Err() == nil {
				w.t.Errorf("claim: %v", err)
			}
			for _, r := range rows {
				g.Go(func() error {
					if err := f(ctx, r.ID, r.Claim); err != nil && ctx.Err() == nil {
						w.t.Logf("%s %d: %v", table, r.ID, err)
						every(ctx, 100*time.Millisecond)
					}
					// As a live agent does; one that was killed releases nothing.
					end := context.WithoutCancel(ctx)
					return pg.Release(end, w.pool, lease, owner, `r.id = @id AND r.claim = @claim`, pgx.NamedArgs{"id": r.ID, "claim": r.Claim})
				})
			}
		}
	}
}

func every(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// await waits until f is true.
func (w *world) await(what string, f func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	for !f() {
		if !every(ctx, 10*time.Millisecond) {
			st, err := w.store.Status(w.t.Context(), "counts")
			w.t.Fatalf("%s did not happen: %+v (%v)", what, st, err)
		}
	}
}

func (w *world) deployment(id int64) ledger.Deployment {
	w.t.Helper()
	d, err := w.store.Deployment(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// finish waits until a command that waits for goal would end, and checks its exit code.
func (w *world) finish(id int64, goal string, want job.ExitCode) ledger.Deployment {
	w.t.Helper()
	var code job.ExitCode
	w.await(fmt.Sprintf("%s of deployment %d", goal, id), func() (done bool) {
		code, done = w.deployment(id).Outcome(goal)
		return done
	})
	d := w.deployment(id)
	if code != want {
		w.t.Fatalf("exit code %d, want %d: %+v", code, want, d)
	}
	return d
}

// ask asks and waits for the answer.
func (w *world) ask(number job.Number, verb ledger.Verb, args ledger.Args) *ledger.Answer {
	w.t.Helper()
	id, err := w.store.Ask(w.t.Context(), ledger.Request{Job: "counts", Number: number, Verb: verb, Args: args, By: "ann"})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.answer(id)
}

func (w *world) answer(id int64) *ledger.Answer {
	w.t.Helper()
	var a *ledger.Answer
	w.await(fmt.Sprintf("answer to request %d", id), func() bool {
		var err error
		if a, err = w.store.Answer(w.t.Context(), id); err != nil {
			w.t.Fatal(err)
		}
		return a != nil
	})
	return a
}

// must asks until it is done: on a loaded machine a flip may give up within the short time that a test allows for another one.
func (w *world) must(number job.Number, verb ledger.Verb, args ledger.Args) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s v%d", verb, number), func() bool {
		a := w.ask(number, verb, args)
		if a.Code != job.ExitOK && !a.Reason.Is(reason.CodeGaveUp) {
			w.t.Fatalf("%s v%d: %+v", verb, number, a)
		}
		return a.Code == job.ExitOK
	})
}

func (w *world) live() string {
	w.t.Helper()
	st, err := w.store.Status(w.t.Context(), "counts")
	if err != nil {
		w.t.Fatal(err)
	}
	if st.Live == nil {
		return ""
	}
	return *st.Live
}

func (w *world) version(number int) status.Version {
	w.t.Helper()
	st, err := w.store.Status(w.t.Context(), "counts")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, v := range st.Versions {
		if v.Version == job.Number(number).String() {
			return v
		}
	}
	w.t.Fatalf("no v%d", number)
	return status.Version{}
}

// shown is what readers see; -1 when there is no view.
func (w *world) shown() int64 {
	w.t.Helper()
	var n *int64
	if err := w.pool.QueryRow(w.t.Context(), `SELECT sum(n)::bigint FROM public.counts`).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	if n == nil {
		return 0
	}
	return *n
}

// exact waits until readers see every offset once.
func (w *world) exact() {
	w.t.Helper()
	facts, err := w.brokers.facts()
	if err != nil {
		w.t.Fatal(err)
	}
	var want int64
	for _, f := range facts {
		want += f.LastStable
	}
	w.await(fmt.Sprintf("the view showing %d", want), func() bool { return w.shown() == want })
}

func (w *world) sql(text string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), text, args...); err != nil {
		w.t.Fatal(err)
	}
}
