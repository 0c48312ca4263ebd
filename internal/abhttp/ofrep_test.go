package abhttp

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestFlagsAreTheArmsThatSQLChooses(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	r.split(false, 400_000, 600_000)
	seen := map[any]int{}
	for n, name := range []string{
		"u1", "alice", "日本", "é", "e\u0301", " ", "\t", "'; DROP TABLE x", strings.Repeat("ü", 128), "\u202e", "👩‍👩‍👧", "null", "\\u0000",
	} {
		var want string
		if err := pool.QueryRow(t.Context(), `SELECT kappactl.pick('orders', 1, $1, 'v1', '{v1,v2}')`, name).Scan(&want); err != nil {
			t.Fatal(err)
		}
		got := r.flag("orders", subject(name))
		if got.status != http.StatusOK || got.body["value"] != want || got.body["reason"] != "SPLIT" {
			t.Errorf("%q: %d %s, SQL chooses %s", name, got.status, got.text, want)
		}
		if seen[want]++; r.recorded() != n+1 {
			t.Errorf("%q: %d subjects are recorded, not %d", name, r.recorded(), n+1)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the subjects are all in one arm: %v", seen)
	}
	r.flag("orders", subject("u1"))
	if n := r.recorded(); n != 13 {
		t.Errorf("a second evaluation is another subject: %d", n)
	}
}

func TestReasonsOfFlags(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	evaluated := func(name string, of map[string]any, value, reason string) {
		t.Helper()
		if got := r.flag(name, of); got.status != http.StatusOK || got.body["value"] != value || got.body["reason"] != reason {
			t.Errorf("%v: %d %s", of, got.status, got.text)
		}
	}
	evaluated("plain", nil, "v1", "STATIC")
	evaluated("orders", nil, "v1", "STATIC")
	r.split(false, 0, 1_000_000)
	r.until("the split is not seen", func() answer { return r.flag("orders", subject("u1")) }, func(a answer) bool { return a.body["value"] == "v2" })
	evaluated("orders", map[string]any{"kappactl.pin_orders": "v1"}, "v1", "TARGETING_MATCH")
	evaluated("orders", map[string]any{"kappactl.pin_plain": "v1", "targetingKey": "u2"}, "v2", "SPLIT")
	if n := r.recorded(); n != 2 {
		t.Errorf("%d subjects are recorded: a pinned one is, or one is not", n)
	}
	r.exec(`UPDATE kappactl.route SET paused = true`)
	r.until("the pause is not seen", func() answer { return r.flag("orders", subject("u1")) },
		func(a answer) bool { return a.body["reason"] == "DISABLED" && a.body["value"] == "v1" })
	r.exec(`DELETE FROM kappactl.route`)
	r.until("the end is not seen", func() answer { return r.flag("orders", subject("u1")) },
		func(a answer) bool { return a.body["reason"] == "STATIC" })
}

func TestFlagsThatCannotBeEvaluated(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	r.split(false, 500_000, 500_000)
	const single = "/ofrep/v1/evaluate/flags/orders"
	for _, c := range []struct {
		body   any
		status int
		code   string
	}{
		{`{}`, 400, noTargetingKey},
		{`null`, 400, noTargetingKey},
		{`{"context": {"targetingKey": ""}}`, 400, noTargetingKey},
		{`{"context": {"targetingKey": null}}`, 400, noTargetingKey},
		{`{"context": {"targetingKey": 7}}`, 400, invalidContext},
		{`{"context": {"targetingKey": ["u1"]}}`, 400, invalidContext},
		{`{"context": {"targetingKey": "` + strings.Repeat("x", 257) + `"}}`, 400, invalidContext},
		{`{"context": {"targetingKey": "a\u0000b"}}`, 400, invalidContext},
		{`{"context": {"targetingKey": "half \ud800"}}`, 400, invalidContext},
		{`{"context": {"targetingKey": "u1", "kappactl.pin_orders": "v9"}}`, 400, invalidContext},
		{`{"context": "u1"}`, 400, parseError},
		{`{"context": {`, 400, parseError},
		{``, 400, parseError},
		{"{\"context\": {\"targetingKey\": \"\xff\"}}", 400, parseError},
		{strings.Repeat("[", 20_000), 400, parseError},
		{`{"context": {"x": "` + strings.Repeat("x", maxContext) + `"}}`, 413, parseError},
	} {
		got := r.send(http.MethodPost, single, c.body)
		if got.status != c.status || got.body["errorCode"] != c.code || got.body["key"] != "orders" {
			t.Errorf("%.60v: %d %s, not %d %s", c.body, got.status, got.text, c.status, c.code)
		}
	}
	for _, name := range []string{"nothing", "new", "%00", "..%2F", "日本"} {
		if got := r.flag(name, subject("u1")); got.status != http.StatusNotFound || got.body["errorCode"] != flagNotFound {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
	if n := r.recorded(); n != 0 {
		t.Errorf("%d subjects are recorded", n)
	}
}

func TestAllFlagsAtOnce(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	r.split(true, 1_000_000, 0)
	const bulk = "/ofrep/v1/evaluate/flags"
	ask := func(context map[string]any, tags ...string) answer {
		return r.send(http.MethodPost, bulk, map[string]any{"context": context}, func(q *http.Request) {
			for _, tag := range tags {
				q.Header.Add("If-None-Match", tag)
			}
		})
	}
	first := ask(subject("u1"))
	want := `{"flags":[{"key":"orders","reason":"SPLIT","variant":"v1","value":"v1","metadata":{"epoch":1,"relation":"public.orders","run":1}},` +
		`{"key":"plain","reason":"STATIC","variant":"v1","value":"v1","metadata":{"relation":"public.plain"}}]}`
	if compact(first.text) != want {
		t.Errorf("%s", first.text)
	}
	tag := first.header.Get("ETag")
	for _, tags := range [][]string{{tag}, {"W/" + tag}, {`"x", ` + tag}, {`"x"`, tag}, {"*"}} {
		if got := ask(subject("u1"), tags...); got.status != http.StatusNotModified || got.header.Get("ETag") != tag || got.text != "" {
			t.Errorf("%q: %d %s", tags, got.status, got.text)
		}
	}
	if got := ask(nil, tag); got.status != http.StatusOK || !strings.Contains(got.text, noTargetingKey) || !strings.Contains(got.text, "plain") {
		t.Errorf("without a subject: %d %s", got.status, got.text)
	}
	if n := r.recorded(); n != 0 {
		t.Errorf("asking for all flags has recorded %d subjects", n)
	}
	if got := r.flag("orders", subject("u1")); got.body["value"] != "v1" {
		t.Errorf("%s", got.text)
	}
	r.exec(`UPDATE kappactl.route SET weights = '{0,1000000}', epoch = 2`)
	r.until("another subject does not get the new arm", func() answer { return ask(subject("u2"), tag) },
		func(a answer) bool { return a.status == http.StatusOK && strings.Contains(a.text, `"v2"`) })
	if got := ask(subject("u1"), tag); !strings.Contains(got.text, `"orders","reason":"SPLIT","variant":"v1"`) {
		t.Errorf("a recorded subject has lost its arm: %s", got.text)
	}
}

// With the database down the last route is served and marked, and a sticky subject that is known keeps its arm.
func TestFlagsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	own := pgtest.StartOwn(t)
	pool, err := pg.Open(t.Context(), pg.Config{DSN: own.DSN, Connect: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := newRig(t, pool)
	r.split(true, 1_000_000, 0)
	if got := r.flag("orders", subject("known")); got.body["value"] != "v1" {
		t.Fatalf("%s", got.text)
	}
	r.exec(`UPDATE kappactl.route SET weights = '{0,1000000}', epoch = 2`)
	r.until("the weights are not seen", func() answer { return r.send(http.MethodGet, "/v1/route/orders?subject=another", nil) },
		func(a answer) bool { return a.body["version"] == "v2" })
	own.Crash(t)
	stale := func(a answer) bool { m, _ := a.body["metadata"].(map[string]any); return m["stale"] == true }
	r.until("it is not marked stale", func() answer { return r.flag("orders", subject("unknown")) }, stale)
	for name, want := range map[string]string{"known": "v1 <nil>", "unknown": "v2 false"} {
		got := r.flag("orders", subject(name))
		m, _ := got.body["metadata"].(map[string]any)
		if sticky := fmt.Sprint(got.body["value"], " ", m["sticky"]); got.status != http.StatusOK || sticky != want || !stale(got) {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
	if got := r.flag("plain", nil); got.body["value"] != "v1" || !stale(got) {
		t.Errorf("a job without an experiment: %s", got.text)
	}
	if got := r.send(http.MethodPost, "/v1/exposures", `{"job": "orders", "subject": "lost"}`); !strings.Contains(got.text, codeUnavailable) {
		t.Errorf("an exposure: %d %s", got.status, got.text)
	}
	own.Start(t)
	r.until("it stays stale", func() answer { return r.flag("orders", subject("unknown")) }, func(a answer) bool { return a.status == 200 && !stale(a) })
	if n := r.recorded(); n != 2 {
		t.Errorf("%d subjects are recorded, of known and unknown", n)
	}
}
