package abhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/retry"
)

func TestMain(m *testing.M) { leaktest.Main(func() int { return pgtest.Run(m) }) }

const secret = "a-token"

// rig is an API over a database with the jobs orders (v1 and v2) and plain (v1), both live at v1.
type rig struct {
	t      *testing.T
	pool   *pg.Pool
	api    *Server
	server *httptest.Server
	client *http.Client
}

func newRig(t *testing.T, pool *pg.Pool) *rig {
	t.Helper()
	r := &rig{t: t, pool: pool}
	for _, name := range []string{"orders", "plain"} {
		r.exec(`INSERT INTO kappactl.job (name, view_schema, view_name, live) VALUES ($1, 'public', $1, 1)`, name)
	}
	r.exec(`INSERT INTO kappactl.job (name, view_schema, view_name) VALUES ('new', 'public', 'new')`)
	r.api = New(Deps{
		Pool: pool, Router: abtest.NewRouter(pool, time.Now), Log: slog.New(slog.DiscardHandler), Now: time.Now, Token: secret,
	})
	r.server = httptest.NewServer(r.api)
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 300}}
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		r.server.Close()
	})
	return r
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// split starts run 1 of orders between v1 and v2.
func (r *rig) split(sticky bool, weights ...int) {
	r.t.Helper()
	assign := map[bool]string{true: "sticky", false: "hash"}[sticky]
	r.exec(`INSERT INTO kappactl.experiment (job, run, arms, assign, coverage, state) VALUES ('orders', 1, '{v1,v2}', $1, 1000000, 'running')`, assign)
	r.exec(`INSERT INTO kappactl.decision (job, run, number, epoch, verdict, weights, reason) VALUES ('orders', 1, 1, 1, 'start', $1, '{}')`, weights)
	r.exec(`INSERT INTO kappactl.route (job, run, arms, weights, coverage, sticky, epoch) VALUES ('orders', 1, '{v1,v2}', $1, 1000000, $2, 1)`,
		weights, sticky)
}

// answer is an HTTP answer.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// send makes a request as a client with the token does. body is a text, or what is sent as JSON.
func (r *rig) send(method, path string, body any, change ...func(*http.Request)) answer {
	r.t.Helper()
	text, plain := body.(string)
	if !plain && body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			r.t.Fatal(err)
		}
		text = string(raw)
	}
	ask, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL+path, strings.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	ask.Header.Set("Authorization", "Bearer "+secret)
	if method == http.MethodPost {
		ask.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(ask)
	}
	got, err := r.client.Do(ask)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	out := answer{status: got.StatusCode, header: got.Header, text: string(raw)}
	_ = json.Unmarshal(raw, &out.body) // lists are read by those who expect them
	documented(r.t, method, path, out)
	return out
}

// flag evaluates a job for a context.
func (r *rig) flag(name string, of map[string]any) answer {
	r.t.Helper()
	return r.send(http.MethodPost, "/ofrep/v1/evaluate/flags/"+name, map[string]any{"context": of})
}

func subject(name any) map[string]any { return map[string]any{"targetingKey": name} }

// until asks until an answer is right: a change of the route reaches the agent within a second.
func (r *rig) until(what string, ask func() answer, right func(answer) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	for {
		got := ask()
		if right(got) {
			return
		}
		if retry.Sleep(ctx, 20*time.Millisecond) != nil {
			r.t.Fatalf("%s: %d %s", what, got.status, got.text)
		}
	}
}

func (r *rig) recorded() (n int) {
	r.t.Helper()
	if err := r.pool.QueryRow(r.t.Context(), `SELECT count(*) FROM kappactl.assignment`).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// compact is JSON without spaces and line ends.
func compact(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}

// floodClock moves by a ten-thousandth of a second with each request.
type floodClock struct{ moved atomic.Int64 }

func (c *floodClock) now() time.Time { return time.Unix(0, c.moved.Load()) }
func (c *floodClock) advance()       { c.moved.Add(int64(100 * time.Microsecond)) }
func (c *floodClock) rest()          { c.moved.Add(int64(time.Second)) }
