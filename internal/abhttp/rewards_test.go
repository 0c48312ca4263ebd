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

// rewarded makes the run of orders one that is rewarded over HTTP.
func (r *rig) rewarded() {
	r.t.Helper()
	r.exec(`UPDATE kappactl.experiment SET settings = '{"coverage": 1, "assign": "hash", "reward": {"kind": "bernoulli", "direction": "up",
		"source": {}, "window": 3600000000000, "grace": 60000000000}}'`)
	r.exec(`INSERT INTO kappactl.reward_source (job, run) VALUES ('orders', 1)`)
}

func codesOf(a answer) string {
	list, _ := a.body["items"].([]any)
	codes := make([]string, len(list))
	for i, one := range list {
		m, _ := one.(map[string]any)
		codes[i] = fmt.Sprint(m["code"])
	}
	return strings.Join(codes, " ")
}

func TestRewardsOverHTTP(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	r.split(false, 500_000, 500_000)
	at := func(ahead time.Duration) string { return time.Now().Add(ahead).UTC().Format(time.RFC3339Nano) }
	one := func(event, subject, value, ts string) string {
		return fmt.Sprintf(`{"job": "orders", "event_id": %q, "subject": %q, "value": %s, "ts": %q}`, event, subject, value, ts)
	}
	if got := r.send(http.MethodPost, "/v1/rewards", one("a", "u1", "1", at(0))); codesOf(got) != "not_running" {
		t.Errorf("an experiment without rewards: %d %s", got.status, got.text)
	}
	r.rewarded()
	r.flag("orders", subject("u1"))
	now := at(time.Second) // after the exposure, by whatever clock
	got := r.send(http.MethodPost, "/v1/rewards", "["+strings.Join([]string{
		one("a", "u1", "1", now), one("a", "u1", "1", now), one("b", "u1", "0.5", now), one("c", "u1", `"1"`, now), one("d", "u1", "1e999", now),
		one("e", "u1", "NaN", now), one("f", "u1", "1", at(time.Hour)), one("g", "u1", "1", "yesterday"), one("", "u1", "1", now),
	}[:5], ", ")+"]")
	if want := "accepted duplicate invalid invalid invalid"; codesOf(got) != want || got.status != http.StatusAccepted {
		t.Errorf("%d %s, not %s", got.status, got.text, want)
	}
	got = r.send(http.MethodPost, "/v1/rewards", "["+strings.Join([]string{
		one("f", "u1", "1", at(time.Hour)), one("g", "u1", "1", "yesterday"), one("", "u1", "1", now), one(strings.Repeat("x", 257), "u1", "1", now),
		one("h", strings.Repeat("x", 257), "1", now), one("i", "", "1", now), `{"job": "orders", "event_id": "j", "subject": "u1", "value": 1}`,
		`{"job": "orders", "event_id": "k", "subject": "u1", "ts": "` + now + `"}`, `7`, one("a", "u1", "0", now), one("l", "nobody", "1", now),
		strings.Replace(one("m", "u1", "1", now), "orders", "nothing", 1), strings.Replace(one("n", "u1", "1", now), "orders", "plain", 1),
	}, ", ")+"]")
	if want := strings.Repeat("invalid ", 9) + "conflict orphan unknown_job not_running"; codesOf(got) != want {
		t.Errorf("%s, not %s\n%s", codesOf(got), want, got.text)
	}
	if got := r.send(http.MethodPost, "/v1/rewards", one("e", "u1", "NaN", now)); got.status != http.StatusBadRequest {
		t.Errorf("NaN is JSON: %d %s", got.status, got.text)
	}
	var arm float64
	if err := pool.QueryRow(t.Context(), `SELECT reward FROM kappactl.assignment WHERE subject = 'u1'`).Scan(&arm); err != nil || arm != 1 {
		t.Errorf("the reward of u1 is %v, %v", arm, err)
	}
	r.exec(`UPDATE kappactl.experiment SET ended_at = now(), state = 'ended'`)
	if got := r.send(http.MethodPost, "/v1/rewards", one("z", "u1", "1", now)); codesOf(got) != "not_running" {
		t.Errorf("after the end: %s", got.text)
	}
}

// A request without an answer is sent again: PostgreSQL is stopped at once after it has committed, and nothing counts twice.
func TestRewardsAreNotCountedTwiceAfterACrash(t *testing.T) {
	t.Parallel()
	own := pgtest.StartOwn(t)
	pool, err := pg.Open(t.Context(), pg.Config{DSN: own.DSN, Connect: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := newRig(t, pool)
	r.split(false, 0, 1_000_000)
	r.rewarded()
	r.exec(`UPDATE kappactl.experiment SET settings = jsonb_set(settings, '{reward,kind}', '"gaussian"')`)
	r.flag("orders", subject("u1"))
	reward := fmt.Sprintf(`{"job": "orders", "event_id": "a", "subject": "u1", "value": 5, "ts": %q}`, time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
	if got := r.send(http.MethodPost, "/v1/rewards", reward); codesOf(got) != "accepted" {
		t.Fatalf("%d %s", got.status, got.text)
	}
	own.Crash(t)
	if got := r.send(http.MethodPost, "/v1/rewards", reward); got.status != http.StatusInternalServerError {
		t.Errorf("without the database: %d %s", got.status, got.text)
	}
	own.Start(t)
	r.until("the reward is not known", func() answer { return r.send(http.MethodPost, "/v1/rewards", reward) },
		func(a answer) bool { return codesOf(a) == "duplicate" })
	var sum float64
	if err := pool.QueryRow(t.Context(), `SELECT sum(reward) FROM kappactl.assignment`).Scan(&sum); err != nil || sum != 5 {
		t.Errorf("%v counts, %v", sum, err)
	}
}
