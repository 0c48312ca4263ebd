package agent_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/reprocess"
)

func TestMain(m *testing.M) { leaktest.Main(func() int { return pgtest.Run(m) }) }

// work is a Runner and leased work whose tasks tell when they begin and end.
type work struct {
	mu      sync.Mutex
	running map[string]int
	begins  *happened
	ends    *happened
	fail    map[string]error
}

func newWork() *work {
	return &work{running: map[string]int{}, begins: newHappened(), ends: newHappened(), fail: map[string]error{}}
}

func (w *work) do(ctx context.Context, name string) error {
	w.mu.Lock()
	w.running[name]++
	err := w.fail[name]
	w.mu.Unlock()
	w.begins.add(name)
	if err == nil {
		<-ctx.Done()
	}
	w.mu.Lock()
	w.running[name]--
	w.mu.Unlock()
	w.ends.add(name)
	return err
}

func (w *work) Run(ctx context.Context, ref job.Ref) error { return w.do(ctx, ref.String()) }

// leased are the kinds of work that the control schema has, done by w.
func (w *work) leased() []agent.Work {
	kinds := reprocess.NewController(reprocess.Deps{}, reprocess.Config{}).Work()
	for i, k := range kinds {
		kinds[i].Run = w.item(k.Name)
	}
	return kinds
}

func (w *work) item(kind string) func(context.Context, int64, int64) error {
	return func(ctx context.Context, id, _ int64) error { return w.do(ctx, fmt.Sprintf("%s %d", kind, id)) }
}

// happened are things that happened; one goroutine awaits them.
type happened struct {
	news chan string
	seen map[string]bool // owned by who awaits
}

func newHappened() *happened {
	return &happened{news: make(chan string, 1000), seen: map[string]bool{}}
}

func (h *happened) add(what string) { h.news <- what }

func await(t *testing.T, from *happened, want string) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for !from.seen[want] {
		select {
		case got := <-from.news:
			from.seen[got] = true
		case <-deadline:
			t.Fatalf("%s did not happen", want)
		}
	}
}

func exec(t *testing.T, pool *pg.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func heartbeat(t *testing.T, pool *pg.Pool) (at time.Time) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT heartbeat_at FROM kappactl.agent`).Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

func addVersion(t *testing.T, pool *pg.Pool, number int, phase job.Phase) {
	t.Helper()
	args := pgx.NamedArgs{"number": number, "phase": string(phase)}
	exec(t, pool, `INSERT INTO kappactl.job (name, view_schema, view_name) VALUES ('j', 'public', 'j') ON CONFLICT DO NOTHING`)
	exec(t, pool, `INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase, frozen_at)
		VALUES ('j', @number::integer, 'h', '{}', '{}', 1, 'duckdb', @phase, now() + @number::integer * interval '1 second')`, args)
	exec(t, pool, `INSERT INTO kappactl.deployment (job, number, promote, state) VALUES ('j', @number, 'auto', 'settled')`, args)
}

// start runs an agent and returns how to stop it and wait for its end.
func start(t *testing.T, pool *pg.Pool, w *work, c agent.Config, more ...agent.Work) (*agent.Agent, func() error) {
	t.Helper()
	c.Dialect, c.Poll, c.Heartbeat = 1, cmp.Or(c.Poll, 20*time.Millisecond), 50*time.Millisecond
	if c.Lease == 0 {
		c.Lease = time.Second
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	a := agent.New(agent.Deps{Pool: pool, Runner: w, Work: append(w.leased(), more...), Log: log, Now: time.Now}, c)
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- a.Run(ctx) }()
	var once sync.Once
	var err error
	stop := func() error {
		once.Do(func() { cancel(); err = <-end })
		return err
	}
	t.Cleanup(func() { _ = stop() })
	select {
	case <-a.Ready():
	case <-time.After(3 * time.Minute):
		t.Fatal("no first heartbeat")
	}
	return a, stop
}

func TestAnAgentHostsEveryVersionWithWorkAndLeavesTheRest(t *testing.T) {
	pool, _ := pgtest.New(t)
	addVersion(t, pool, 1, job.Live)
	addVersion(t, pool, 2, job.Retired)
	exec(t, pool, `UPDATE kappactl.version SET ended_at = now() WHERE number = 2`)
	w := newWork()
	_, stop := start(t, pool, w, agent.Config{ID: "a"})
	await(t, w.begins, "j/v1")
	addVersion(t, pool, 3, job.CatchingUp)
	await(t, w.begins, "j/v3")
	exec(t, pool, `UPDATE kappactl.version SET paused_at = now() WHERE number = 3`)
	await(t, w.ends, "j/v3")
	if err := stop(); err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, n := range w.running {
		if n != 0 {
			t.Errorf("%d of %s still run", n, name)
		}
	}
	if _, ran := w.running["j/v2"]; ran {
		t.Error("a version that ended was run")
	}
	if _, ran := w.running["deployment 2"]; ran {
		t.Error("the deployment of a version that ended was controlled")
	}
}

func TestOnlyTheNewestDeploymentOfAVersionIsControlled(t *testing.T) {
	pool, _ := pgtest.New(t)
	addVersion(t, pool, 1, job.Standby)
	exec(t, pool, `INSERT INTO kappactl.deployment (job, number, promote, state, flip_only) VALUES ('j', 1, 'auto', 'rolling_out', true)`)
	w := newWork()
	_, stop := start(t, pool, w, agent.Config{ID: "a"})
	await(t, w.begins, "deployment 2")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if w.running["deployment 1"] != 0 || len(w.running) != 2 {
		t.Errorf("ran %v", w.running)
	}
}

func TestWhatIsAskedForIsTakenUpBetweenTwoLooks(t *testing.T) {
	pool, _ := pgtest.New(t)
	addVersion(t, pool, 1, job.Retired)
	exec(t, pool, `UPDATE kappactl.version SET ended_at = now()`) // nothing to do: an agent that has just claimed work polls eagerly
	w := newWork()
	_, stop := start(t, pool, w, agent.Config{ID: "a", Poll: time.Hour, Lease: time.Hour})
	for _, want := range []string{"request 1", "request 2"} {
		exec(t, pool, `INSERT INTO kappactl.request (job, number, verb) VALUES ('j', 1, 'pause')`)
		await(t, w.begins, want)
	}
	addVersion(t, pool, 2, job.Staged)
	await(t, w.begins, "deployment 2")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestAStoppedAgentGivesUpItsLeasesAtOnce(t *testing.T) {
	pool, _ := pgtest.New(t)
	addVersion(t, pool, 1, job.Live)
	exec(t, pool, `INSERT INTO kappactl.request (job, number, verb) VALUES ('j', 1, 'pause')`)
	first, second := newWork(), newWork()
	_, stop := start(t, pool, first, agent.Config{ID: "a", Lease: time.Hour})
	await(t, first.begins, "deployment 1")
	await(t, first.begins, "request 1")
	_, stopSecond := start(t, pool, second, agent.Config{ID: "b", Lease: time.Hour})
	if err := stop(); err != nil {
		t.Error(err)
	}
	await(t, second.begins, "deployment 1")
	if n, err := agent.Alive(t.Context(), pool, 5*time.Second); err != nil || n != 1 {
		t.Errorf("%d alive (%v)", n, err)
	}
	if err := stopSecond(); err != nil {
		t.Error(err)
	}
	if n, err := agent.Alive(t.Context(), pool, 5*time.Second); err != nil || n != 0 {
		t.Errorf("%d alive (%v)", n, err)
	}
}

func TestATaskWhoseLeaseWasTakenEnds(t *testing.T) {
	pool, _ := pgtest.New(t)
	addVersion(t, pool, 1, job.Live)
	w := newWork()
	_, stop := start(t, pool, w, agent.Config{ID: "a", Lease: 300 * time.Millisecond})
	await(t, w.begins, "deployment 1")
	exec(t, pool, `UPDATE kappactl.deployment SET owner = 'other', claim = claim + 1, lease = now() + interval '1 hour'`)
	await(t, w.ends, "deployment 1")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestAnItemThatFailsIsLeftToOtherAgentsWhileItBacksOff(t *testing.T) {
	pool, _ := pgtest.New(t)
	addVersion(t, pool, 1, job.Retired)
	exec(t, pool, `UPDATE kappactl.version SET ended_at = now()`)
	failing, second := newWork(), newWork()
	failing.fail["request 1"] = errors.New("no")
	_, stop := start(t, pool, failing, agent.Config{ID: "a", Lease: time.Hour})
	exec(t, pool, `INSERT INTO kappactl.request (job, number, verb) VALUES ('j', 1, 'pause')`)
	await(t, failing.ends, "request 1")
	_, stopSecond := start(t, pool, second, agent.Config{ID: "b"})
	await(t, second.begins, "request 1")
	if err := errors.Join(stop(), stopSecond()); err != nil {
		t.Error(err)
	}
}

// A package gets leases, fencing and takeover for a table of its own by describing it.
func TestAnotherKindOfWorkNeedsOnlyADescription(t *testing.T) {
	pool, _ := pgtest.New(t)
	exec(t, pool, `CREATE TABLE kappactl.errand (id bigint PRIMARY KEY, due boolean, claim bigint NOT NULL DEFAULT 0, owner text, lease timestamptz)`)
	exec(t, pool, `INSERT INTO kappactl.errand VALUES (1, true), (2, false)`)
	first, second := newWork(), newWork()
	errand := func(w *work) agent.Work {
		return agent.Work{Name: "errand", Table: "kappactl.errand", Open: "r.due", Run: w.item("errand")}
	}
	_, stop := start(t, pool, first, agent.Config{ID: "a", Poll: time.Hour, Lease: time.Hour}, errand(first))
	await(t, first.begins, "errand 1")
	exec(t, pool, `INSERT INTO kappactl.errand VALUES (3, true)`) // a glance finds it
	await(t, first.begins, "errand 3")
	_, stopSecond := start(t, pool, second, agent.Config{ID: "b", Lease: 300 * time.Millisecond}, errand(second))
	if err := stop(); err != nil {
		t.Error(err)
	}
	await(t, second.begins, "errand 1")
	if _, ran := first.running["errand 2"]; ran { // it has ended
		t.Error("an item was run that was not open")
	}
	var claim int
	if err := pool.QueryRow(t.Context(), `SELECT claim FROM kappactl.errand WHERE id = 1`).Scan(&claim); err != nil || claim != 2 {
		t.Errorf("claim %d, %v; want 2: the first agent is fenced", claim, err)
	}
	exec(t, pool, `UPDATE kappactl.errand SET owner = 'other', claim = claim + 1, lease = now() + interval '1 hour' WHERE id = 1`)
	await(t, second.ends, "errand 1")
	if err := stopSecond(); err != nil {
		t.Error(err)
	}
}

func TestAnAgentOutlivesALostDatabase(t *testing.T) {
	pool, dsn := pgtest.New(t)
	addVersion(t, pool, 1, job.Live)
	w := newWork()
	_, stop := start(t, pool, w, agent.Config{ID: "a", Lease: time.Hour})
	await(t, w.begins, "j/v1")
	// Every session of the database is ended, over and over; the agent's pool has to open new ones.
	other, err := pg.Open(t.Context(), pg.Config{DSN: dsn, Application: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range 5 {
		if _, err := other.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'kappactl'`); err != nil {
			t.Fatal(err)
		}
	}
	addVersion(t, other, 2, job.Live)
	await(t, w.begins, "j/v2")
	late := time.After(3 * time.Minute)
	for before := heartbeat(t, other); !heartbeat(t, other).After(before); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			t.Fatal("no heartbeat after the database came back")
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestWhatASilentAgentLeftOpenIsEnded(t *testing.T) {
	pool, dsn := pgtest.New(t)
	marked := func(id string) *pg.Pool {
		p, err := pg.Open(t.Context(), pg.Config{DSN: dsn, Mark: id})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		exec(t, pool, `INSERT INTO kappactl.agent (id, host, pid, release, capacity, dialects) VALUES ($1, 'h', 1, 'r', 1, '{1}')`, id)
		return p
	}
	silent, living := marked("silent"), marked("living")
	exec(t, pool, `UPDATE kappactl.agent SET heartbeat_at = heartbeat_at + CASE id WHEN 'silent' THEN interval '-1 minute' ELSE interval '1 minute' END`)
	_, stop := start(t, pool, newWork(), agent.Config{ID: "a", Lease: 300 * time.Millisecond})
	// The one is ended in its transaction; the other, which began before it, is not.
	err := living.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		err := silent.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
			var pid int
			if err := tx.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
				return err
			}
			for there := true; there; {
				if err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, pid).Scan(&there); err != nil {
					return err
				}
			}
			_, err := tx.Exec(t.Context(), `SELECT 1`)
			return err
		})
		if !pg.Unreachable(err) {
			t.Errorf("the silent agent's transaction ended with %v", err)
		}
		_, err = tx.Exec(t.Context(), `SELECT 1`)
		return err
	})
	if err != nil {
		t.Errorf("the living agent's transaction ended with %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
