package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) { leaktest.Main(func() int { return pgtest.Run(m) }) }

// work is a Runner and a Controller whose tasks tell when they begin and end.
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
func (w *work) Control(ctx context.Context, id, _ int64) error {
	return w.do(ctx, fmt.Sprintf("deployment %d", id))
}

func (w *work) Answer(ctx context.Context, id, _ int64) error {
	return w.do(ctx, fmt.Sprintf("request %d", id))
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
	deadline := time.After(time.Minute)
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
func start(t *testing.T, pool *pg.Pool, w *work, c Config) (*Agent, func() error) {
	t.Helper()
	c.Dialect, c.Poll, c.Heartbeat = 1, cmp.Or(c.Poll, 20*time.Millisecond), 50*time.Millisecond
	if c.Lease == 0 {
		c.Lease = time.Second
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	a := New(Deps{Pool: pool, Runner: w, Controller: w, Log: log, Now: time.Now}, c)
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
	case <-time.After(time.Minute):
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
	_, stop := start(t, pool, w, Config{ID: "a"})
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
	_, stop := start(t, pool, w, Config{ID: "a"})
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
	exec(t, pool, `UPDATE kappactl.version SET ended_at = now()`) // nothing to do: an agent that took something up looks eagerly
	w := newWork()
	_, stop := start(t, pool, w, Config{ID: "a", Poll: time.Hour, Lease: time.Hour})
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
	_, stop := start(t, pool, first, Config{ID: "a", Lease: time.Hour})
	await(t, first.begins, "deployment 1")
	await(t, first.begins, "request 1")
	_, stopSecond := start(t, pool, second, Config{ID: "b", Lease: time.Hour})
	if err := stop(); err != nil {
		t.Error(err)
	}
	await(t, second.begins, "deployment 1")
	if n, err := Alive(t.Context(), pool, 5*time.Second); err != nil || n != 1 {
		t.Errorf("%d alive (%v)", n, err)
	}
	if err := stopSecond(); err != nil {
		t.Error(err)
	}
	if n, err := Alive(t.Context(), pool, 5*time.Second); err != nil || n != 0 {
		t.Errorf("%d alive (%v)", n, err)
	}
}

func TestATaskWhoseLeaseWasTakenEnds(t *testing.T) {
	pool, _ := pgtest.New(t)
	addVersion(t, pool, 1, job.Live)
	w := newWork()
	_, stop := start(t, pool, w, Config{ID: "a", Lease: 300 * time.Millisecond})
	await(t, w.begins, "deployment 1")
	exec(t, pool, `UPDATE kappactl.deployment SET owner = 'other', claim = claim + 1, lease = now() + interval '1 hour'`)
	await(t, w.ends, "deployment 1")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestAFailedTaskIsTriedAgainEverMoreSlowly(t *testing.T) {
	now := time.Unix(1000, 0)
	var lines strings.Builder
	log := slog.New(slog.NewTextHandler(&lines, nil))
	a := New(Deps{Log: log, Now: func() time.Time { return now }}, Config{ID: "a"})
	h := &hosting{a: a, rests: map[string]rest{}, quiet: newQuiet(log, a.Now)}
	var pauses []time.Duration
	for range 9 {
		done := make(chan struct{})
		close(done)
		h.over("version j/v1", &task{began: now, err: errors.New("no"), done: done})
		pauses = append(pauses, h.rests["version j/v1"].until.Sub(now))
		if h.begin(t.Context(), "version j/v1", nil) != nil {
			t.Fatal("began while it rests")
		}
	}
	if pauses[0] != restFirst || pauses[1] != 2*restFirst || pauses[8] != restMost {
		t.Errorf("pauses %v", pauses)
	}
	if n := strings.Count(lines.String(), "\n"); n != 1 {
		t.Errorf("%d log lines for the same trouble:\n%s", n, lines.String())
	}
	h.over("version j/v1", &task{began: now})
	if _, rests := h.rests["version j/v1"]; rests {
		t.Error("rests after a good run")
	}
}

func TestAnAgentOutlivesALostDatabase(t *testing.T) {
	pool, dsn := pgtest.New(t)
	addVersion(t, pool, 1, job.Live)
	w := newWork()
	_, stop := start(t, pool, w, Config{ID: "a", Lease: time.Hour})
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
	late := time.After(time.Minute)
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
	_, stop := start(t, pool, newWork(), Config{ID: "a", Lease: 300 * time.Millisecond})
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
