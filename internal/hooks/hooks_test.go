package hooks_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/hooks"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a history and agents that tell hooks of it.
type world struct {
	t     *testing.T
	pool  *pg.Pool
	notes chan job.HookOutcome
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool, _ := pgtest.New(t)
	w := &world{t: t, pool: pool, notes: make(chan job.HookOutcome, 100)}
	w.sql(`INSERT INTO kappactl.job (name, view_schema, view_name) VALUES ('counts', 'public', 'counts')`)
	w.sql(`INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase, git_revision)
		VALUES ('counts', 2, 'h', '{}', '{}', 1, 'e', 'live', 'abc123')`)
	w.sql(`INSERT INTO kappactl.deployment (job, number, previous, promote, state) VALUES ('counts', 2, 1, 'auto', 'observing')`)
	return w
}

func (w *world) sql(text string) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) event(kind, detail string) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), `INSERT INTO kappactl.event (job, number, deployment, kind, message, detail, by)
		VALUES ('counts', 2, 1, '`+kind+`', '{"code": "refused", "args": {"cause": "it happened"}}', '`+detail+`', 'ann@host')`); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) service(agent string, config hooks.Config) *hooks.Service {
	if config.Poll == 0 {
		config.Poll, config.Backoff = 5*time.Millisecond, 5*time.Millisecond
	}
	for i := range config.Hooks {
		if config.Hooks[i].Timeout == 0 {
			config.Hooks[i].Timeout = 20 * time.Second
		}
	}
	env := map[string]string{"PATH": os.Getenv("PATH"), "PGPASSWORD": "sesame", "LANG": "C"}
	return hooks.New(hooks.Deps{
		Pool: w.pool, Agent: agent, Env: func(name string) string { return env[name] }, Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
		Now: time.Now, Rand: rand.New(rand.NewPCG(1, 2)),
		Note: func(_ context.Context, _ job.HookFacts, o job.HookOutcome) error {
			o.Seconds = 0
			w.notes <- o
			return nil
		},
	}, config)
}

// run runs an agent and returns once it knows its hooks.
func (w *world) run(agent string, config hooks.Config) (stop func()) {
	w.t.Helper()
	s := w.service(agent, config)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	w.t.Cleanup(stop)
	names := make([]string, len(config.Hooks))
	for i, h := range config.Hooks {
		names[i] = "'" + h.Name + "'"
	}
	w.await("the hooks are known", `SELECT count(*) FROM kappactl.hook WHERE name IN (`+strings.Join(append(names, "''"), ", ")+`)`, len(names))
	return stop
}

func (w *world) await(what, count string, want int) {
	w.t.Helper()
	for late := time.Now().Add(3 * time.Minute); ; {
		var n int
		if err := w.pool.QueryRow(w.t.Context(), count).Scan(&n); err != nil {
			w.t.Fatal(err)
		}
		if n == want {
			return
		}
		if time.Now().After(late) {
			w.t.Fatalf("%s: %d, want %d", what, n, want)
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the database has no event to wait for
	}
}

func (w *world) note() job.HookOutcome {
	w.t.Helper()
	select {
	case o := <-w.notes:
		return o
	case <-time.After(3 * time.Minute):
		w.t.Fatal("no hook was told")
	}
	return job.HookOutcome{}
}

func TestACommandIsToldOfWhatHappensFromNowOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.event("promoted", `{"from": 1}`) // the past
	w.run("a", hooks.Config{Hooks: []hooks.Hook{{
		Name: "tell", Command: []string{"sh", "-c", `env | grep -E '^(KAPPACTL|PG|LANG)' | grep -v _AT= | sort; cat; echo oops >&2; exit 3`},
	}}})
	w.event("deploy", `{}`)
	want := "KAPPACTL_BY=ann@host\nKAPPACTL_DEPLOYMENT=1\nKAPPACTL_EVENT=stage\nKAPPACTL_EVENT_ID=2\nKAPPACTL_GIT_REVISION=abc123\n" +
		"KAPPACTL_JOB=counts\nKAPPACTL_MESSAGE=it happened\nKAPPACTL_PREVIOUS=v1\nKAPPACTL_VERSION=v2\nKAPPACTL_VIEW=public.counts\nLANG=C\n"
	got := w.note()
	text, body, _ := strings.Cut(got.Output, "{")
	body, _, _ = strings.Cut(body, "\n")
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	var facts job.HookFacts
	if err := json.Unmarshal([]byte("{"+strings.TrimSuffix(body, "oops")), &facts); err != nil || facts.ID != 2 || facts.Event != job.HookStage || facts.Version != "v2" {
		t.Errorf("%v: %s", err, body)
	}
	got.Output = ""
	if diff := cmp.Diff(job.HookOutcome{Hook: "tell", Reason: "failed with exit status 3", Tries: 1}, got); diff != "" {
		t.Error(diff)
	}
	w.await("deliveries that are over", `SELECT count(*) FROM kappactl.delivery WHERE state = 'done'`, 1)
}

func TestEveryEventIsToldToWhomItConcerns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	true1 := []string{"true"}
	w.run("a", hooks.Config{Hooks: []hooks.Hook{
		{Name: "all", Command: true1},
		{Name: "some", Command: true1, On: []job.HookEvent{job.HookCaughtUp, job.HookRetire}},
		{Name: "other", Command: true1, Jobs: []string{"other"}},
		{Name: "web", URL: "http://127.0.0.1:1/", On: []job.HookEvent{job.HookBeforePromote}},
	}})
	for _, e := range [][2]string{
		{"deploy", `{}`},
		{"phase", `{"to": "caught_up"}`},
		{"phase", `{"to": "catching_up"}`},
		{"phase", `{"to": "caught_up"}`},
		{"before_promote", `{}`},
		{"promoted", `{"from": 1}`},
		{"rolled_back", `{"from": 3}`},
		{"pause", `{}`},
		{"retire", `{}`},
		{"batch_failed", `{}`},
		{"schedule_failed", `{}`},
		{"batch_late", `{}`},
		{"archive_late", `{}`},
		{"archive_stopped", `{}`},
	} {
		w.event(e[0], e[1])
	}
	w.await("deliveries", `SELECT count(*) FROM kappactl.delivery`, 13)
	var got string
	if err := w.pool.QueryRow(t.Context(), `SELECT string_agg(hook || ' ' || told, ', ' ORDER BY event, hook) FROM kappactl.delivery`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	want := "all stage, all caught_up, some caught_up, web before_promote, all after_promote, all rollback, all retire, some retire, " +
		"all batch_failed, all batch_failed, all batch_late, all archive_late, all archive_stopped"
	if got != want {
		t.Errorf("told: %s\nwant: %s", got, want)
	}
}

func TestACommandThatTakesTooLongIsKilledWithWhatItStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "child")
	s := w.service("a", hooks.Config{Hooks: []hooks.Hook{
		{Name: "slow", Timeout: 200 * time.Millisecond, Command: []string{"sh", "-c", "(sleep 60; echo late) & echo $! > " + file + "; echo begun; wait"}},
		{Name: "never", Command: []string{"false"}},
	}})
	got, err := s.Before(t.Context(), job.HookFacts{Event: job.HookBeforePromote, Job: "counts"})
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v: the first refusal ends it", got, err)
	}
	got[0].Seconds = 0
	want := job.HookOutcome{Hook: "slow", Reason: "killed after its timeout of 200ms", Output: "begun", Tries: 1}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); runs(strings.TrimSpace(string(pid))); {
		if time.Now().After(deadline) {
			t.Fatalf("its child, process %s, still runs", pid)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // a process of another parent has no event to wait for
	}
}

// runs reports whether a process exists and is not a zombie. A process that was sent SIGKILL runs until the kernel has ended it.
func runs(pid string) bool {
	state, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(state), ") Z ")
}

// receiver is an HTTP server that answers with the codes in turn and then repeats the last one.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
}

func newReceiver(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.bodies, r.heads = append(r.bodies, string(body)), append(r.heads, req.Header)
		n := len(r.bodies)
		r.mu.Unlock()
		answer(n, w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func TestAnAddressIsTriedAgainWithTheSameSignedBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 3 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
		}
	})
	w.run("a", hooks.Config{Hooks: []hooks.Hook{{
		Name: "web", URL: r.URL + "/secret-path", Secret: func(context.Context) (string, error) { return "sesame", nil },
	}}})
	w.event("rolled_back", `{"from": 3}`)
	first, second := w.note(), w.note()
	if first.OK || first.Tries != 1 || !strings.HasSuffix(first.Reason, " answered 503 Service Unavailable") || first.Output != "not now" || strings.Contains(first.Reason, "secret-path") {
		t.Errorf("first: %+v", first)
	}
	if !second.OK || second.Tries != 3 {
		t.Errorf("second: %+v", second)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, body := range r.bodies {
		h := r.heads[i]
		if body != r.bodies[0] || h.Get("X-Kappactl-Signature") != hooks.Sign("sesame", []byte(body)) || h.Get("X-Kappactl-Id") != "1" || h.Get("X-Kappactl-Event") != "rollback" {
			t.Errorf("try %d: %s %v", i+1, body, h)
		}
	}
	var facts job.HookFacts
	if err := json.Unmarshal([]byte(r.bodies[0]), &facts); err != nil || facts.Previous == nil || *facts.Previous != "v3" || facts.Schema != 1 {
		t.Errorf("%v: %s", err, r.bodies[0])
	}
}

func TestWhatAnAgentLeftIsDeliveredByTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	arrived := make(chan struct{}, 10)
	r := newReceiver(t, func(n int, _ http.ResponseWriter, req *http.Request) {
		arrived <- struct{}{}
		if n == 1 {
			<-req.Context().Done() // never answers
		}
	})
	config := hooks.Config{Hooks: []hooks.Hook{{Name: "web", URL: r.URL}}}
	stop := w.run("a", config)
	w.event("retire", `{}`)
	<-arrived
	stop() // an agent that is told to stop gives it back at once
	w.await("due", `SELECT count(*) FROM kappactl.delivery WHERE state = 'due' AND due_at <= clock_timestamp()`, 1)
	w.sql(`UPDATE kappactl.delivery SET owner = 'killed', due_at = clock_timestamp() - interval '1 second'`) // as a killed one leaves it, later
	w.event("promoted", `{"from": 1}`)                                                                       // while no agent was running
	w.run("b", config)
	if o := w.note(); !o.OK {
		t.Errorf("%+v", o)
	}
	if o := w.note(); !o.OK {
		t.Errorf("%+v", o)
	}
	w.await("deliveries that are over", `SELECT count(*) FROM kappactl.delivery WHERE state = 'done'`, 2)
}

func TestAnAddressThatStaysAwayIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run("a", hooks.Config{Hooks: []hooks.Hook{{Name: "web", URL: "http://127.0.0.1:1/x"}}, Poll: time.Millisecond, Backoff: time.Millisecond, GiveUp: time.Nanosecond})
	w.event("retire", `{}`)
	if o := w.note(); o.OK || !strings.HasPrefix(o.Reason, "given up: request to 127.0.0.1:1 failed: ") {
		t.Errorf("%+v", o)
	}
	w.await("given up", `SELECT count(*) FROM kappactl.delivery WHERE state = 'given up'`, 1)
}

func TestAnAnswerThatPostgreSQLCannotKeepEndsAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 500 \xff\x00"+strings.Repeat("x", 100_000)+"\r\nContent-Length: 0\r\n\r\n")
		_ = conn.Close()
	})
	w.run("a", hooks.Config{Hooks: []hooks.Hook{{Name: "web", URL: r.URL}}, Poll: time.Millisecond, Backoff: time.Millisecond, GiveUp: time.Nanosecond})
	w.event("retire", `{}`)
	if o := w.note(); o.OK || !strings.Contains(o.Reason, " answered 500 \uFFFD\uFFFDxx") || len(o.Reason) > 5000 {
		t.Errorf("%+v", o)
	}
	w.await("given up", `SELECT count(*) FROM kappactl.delivery WHERE state = 'given up'`, 1)
}

func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t, func(_ int, w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "/elsewhere", http.StatusFound)
	})
	w.run("a", hooks.Config{Hooks: []hooks.Hook{{Name: "web", URL: r.URL}}, GiveUp: time.Nanosecond, Poll: time.Millisecond})
	w.event("retire", `{}`)
	if o := w.note(); o.OK || !strings.Contains(o.Reason, "302") {
		t.Errorf("%+v", o)
	}
}
