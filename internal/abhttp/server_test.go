package abhttp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kappactl/kappactl/internal/pgtest"
)

const evaluateOrders = "/ofrep/v1/evaluate/flags/orders"

func TestRequestsThatAreNoneOfTheAPI(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	header := func(name, value string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set(name, value) }
	}
	for _, c := range []struct {
		method, path string
		body         any
		change       func(*http.Request)
		status       int
		code         string
	}{
		{"POST", evaluateOrders, `{}`, func(q *http.Request) { q.Header.Del("Authorization") }, 401, "unauthorized"},
		{"POST", evaluateOrders, `{}`, header("Authorization", "Bearer wrong"), 401, "unauthorized"},
		{"POST", evaluateOrders, `{}`, header("Authorization", "Bearer "), 401, "unauthorized"},
		{"POST", evaluateOrders, `{}`, header("Authorization", "Basic "+secret), 401, "unauthorized"},
		{"POST", evaluateOrders, `{}`, header("Authorization", "Bearer "+secret+"x"), 401, "unauthorized"},
		{"GET", "/v1/nothing", nil, func(q *http.Request) { q.Header.Del("Authorization") }, 401, "unauthorized"},
		{"GET", "/v1/nothing", nil, nil, 404, "not_found"},
		{"GET", evaluateOrders, nil, nil, 405, "method_not_allowed"},
		{"DELETE", "/v1/experiments/orders", nil, nil, 405, "method_not_allowed"},
		{"PUT", "/v1/exposures", `{}`, nil, 405, "method_not_allowed"},
		{"PATCH", "/v1/route/orders", `{}`, nil, 405, "method_not_allowed"},
		{"POST", "/v1/exposures", `{}`, header("Content-Type", "text/plain"), 415, "content_type"},
		{"POST", "/v1/exposures", `{}`, header("Content-Type", ""), 415, "content_type"},
		{"POST", "/v1/exposures", ``, nil, 400, "empty"},
		{"POST", "/v1/exposures", `[]`, nil, 400, "empty"},
		{"POST", "/v1/exposures", `[{]`, nil, 400, "parse_error"},
		{"POST", "/v1/exposures", `{"job": "orders"} x`, nil, 400, "parse_error"},
		{"POST", "/v1/exposures", "\"\xff\"", nil, 400, "parse_error"},
		{"POST", "/v1/exposures", strings.Repeat("{}\n", maxItems+1), nil, 413, "too_many_items"},
		{"POST", "/v1/exposures", `["` + strings.Repeat("x", maxBody) + `"]`, nil, 413, "too_large"},
		{"GET", "/v1/route/nothing", nil, nil, 404, "unknown_job"},
		{"GET", "/v1/route/orders?subject=%00", nil, nil, 400, "invalid"},
		{"GET", "/v1/route/orders?subject=%ff", nil, nil, 400, "invalid"},
		{"GET", "/v1/experiments/nothing", nil, nil, 404, "not_found"},
		{"GET", "/v1/experiments/orders", nil, nil, 404, "not_found"},
		{"GET", "/v1/experiments/nothing/decisions", nil, nil, 404, "not_found"},
	} {
		var changes []func(*http.Request)
		if c.change != nil {
			changes = append(changes, c.change)
		}
		got := r.send(c.method, c.path, c.body, changes...)
		if got.status != c.status || got.body["code"] != c.code {
			t.Errorf("%s %s %.40v: %d %s, not %d %s", c.method, c.path, c.body, got.status, got.text, c.status, c.code)
		}
	}
	if got := r.send("GET", evaluateOrders, nil); got.header.Get("Allow") != "POST" {
		t.Errorf("Allow: %q", got.header.Get("Allow"))
	}
}

// Without a token only requests to a loopback address are served: a browser sends the name of the page's site.
func TestWithoutATokenOnlyLoopbackIsServed(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	r.api.deps.Token = ""
	for host, want := range map[string]int{
		"127.0.0.1:8080": 200, "localhost": 200, "[::1]:80": 200, "127.9.9.9": 200, "example.com": 403, "10.0.0.7:8080": 403, "": 403,
		"127.0.0.1.example.com": 403, "localhost.example.com:80": 403,
	} {
		w := httptest.NewRecorder()
		q := httptest.NewRequest(http.MethodGet, "/v1/route/plain", http.NoBody)
		q.Host = host
		if r.api.ServeHTTP(w, q); w.Code != want {
			t.Errorf("%q: %d, not %d", host, w.Code, want)
		}
	}
}

func TestExposuresAreRecorded(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	r.split(true, 0, 1_000_000)
	got := r.send(http.MethodPost, "/v1/exposures", `[{"job": "orders", "subject": "a"}, {"job": "orders", "subject": "a"}, {"job": "plain", "subject": "a"},
		{"job": "nothing", "subject": "a"}, {"job": "orders", "subject": ""}, {"job": "orders", "subject": 7}, {"job": "orders", "subject": "b", "x": 1},
		{"job": "orders", "subject": "half \udc00"}, null]`)
	var codes []string
	list, _ := got.body["items"].([]any)
	for _, one := range list {
		m, _ := one.(map[string]any)
		codes = append(codes, fmt.Sprint(m["code"], " ", m["version"]))
	}
	want := "recorded v2, recorded v2, not_recorded v1, unknown_job <nil>, invalid <nil>, invalid <nil>, invalid <nil>, invalid <nil>, invalid <nil>"
	if strings.Join(codes, ", ") != want || got.status != http.StatusAccepted {
		t.Errorf("%d %s", got.status, strings.Join(codes, ", "))
	}
	many := strings.Builder{}
	for n := range maxItems {
		fmt.Fprintf(&many, "{\"job\": \"orders\", \"subject\": \"m%d\"}\n", n)
	}
	got = r.send(http.MethodPost, "/v1/exposures", many.String(), func(q *http.Request) { q.Header.Set("Content-Type", "application/x-ndjson") })
	if n := strings.Count(got.text, `"recorded"`); n != maxItems || r.recorded() != maxItems+1 {
		t.Errorf("%d of 1000 were recorded, %d rows", n, r.recorded())
	}
	if got := r.send(http.MethodGet, "/v1/route/orders?subject=m7", nil); got.body["recorded"] != true || got.body["version"] != "v2" {
		t.Errorf("%s", got.text)
	}
	if got := r.send(http.MethodGet, "/v1/experiments/orders", nil); got.body["state"] != "running" {
		t.Errorf("%d %s", got.status, got.text)
	}
	if got := r.send(http.MethodGet, "/v1/experiments/orders/decisions", nil); !strings.Contains(got.text, `"start"`) {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// Ten thousand requests as fast as they can be sent: each is answered, or refused with the time to wait, and the agent goes on.
func TestAFloodIsRefused(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	r.split(false, 500_000, 500_000)
	clock := &floodClock{}
	r.api.bucket = newBucket(perSecond, burst, clock.now) // one second of the flood, however long this machine takes for it
	var answered, refused, other atomic.Int64
	var wait sync.WaitGroup
	for worker := range 100 {
		wait.Go(func() {
			for n := range 100 {
				clock.advance()
				got, retryAfter, err := r.flood(fmt.Sprintf("u%d", worker*100+n))
				switch {
				case err == nil && got == http.StatusOK:
					answered.Add(1)
				case err == nil && got == http.StatusTooManyRequests && retryAfter == "1":
					refused.Add(1)
				default:
					t.Logf("%d %v", got, err)
					other.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if other.Load() > 0 || answered.Load() < burst || answered.Load() > burst+perSecond || refused.Load() < 10_000-burst-perSecond {
		t.Errorf("answered %d, refused %d, otherwise %d", answered.Load(), refused.Load(), other.Load())
	}
	if n := r.recorded(); int64(n) != answered.Load() {
		t.Errorf("%d were answered, %d are recorded", answered.Load(), n)
	}
	clock.rest()
	if got := r.flag("orders", subject("after")); got.status != http.StatusOK {
		t.Errorf("after the flood: %d %s", got.status, got.text)
	}
}

func (r *rig) flood(name string) (status int, retryAfter string, err error) {
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.server.URL+evaluateOrders,
		strings.NewReader(`{"context": {"targetingKey": "`+name+`"}}`))
	if err != nil {
		return 0, "", err
	}
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Content-Type", "application/json")
	got, err := r.client.Do(q)
	if err != nil {
		return 0, "", err
	}
	defer got.Body.Close()
	_, err = io.Copy(io.Discard, got.Body)
	return got.StatusCode, got.Header.Get("Retry-After"), err
}
