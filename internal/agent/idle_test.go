package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/pgtest"
)

const errandTable = `CREATE TABLE kappactl.errand (
	id bigint PRIMARY KEY, claim bigint NOT NULL DEFAULT 0, owner text, lease timestamptz)`

// An idle agent reads once for all kinds of work. It sends no UPDATE, not even one that finds no row.
func TestAnIdleAgentOnlyReads(t *testing.T) {
	pool, _ := pgtest.New(t)
	exec(t, pool, errandTable)
	exec(t, pool, `INSERT INTO kappactl.errand VALUES (1)`)
	exec(t, pool, `CREATE SEQUENCE kappactl.looked`)
	exec(t, pool, `CREATE SEQUENCE kappactl.updated`)
	exec(t, pool, `CREATE FUNCTION kappactl.note() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM nextval('kappactl.updated'); RETURN NULL; END $$`)
	for _, table := range []string{"errand", "request", "deployment"} {
		exec(t, pool, `CREATE TRIGGER note AFTER UPDATE ON kappactl.`+table+` FOR EACH STATEMENT EXECUTE FUNCTION kappactl.note()`)
	}
	w := newWork()
	errand := agent.Work{
		Name: "errand", Table: "kappactl.errand", Open: "nextval('kappactl.looked') < 0", Run: w.item("errand"),
	}
	_, stop := start(t, pool, w, agent.Config{ID: "a", Poll: 5 * time.Millisecond, Lease: 30 * time.Millisecond}, errand)
	var looked, updated int64
	for late := time.After(3 * time.Minute); looked < 20; {
		if err := pool.QueryRow(t.Context(), `SELECT l.last_value, CASE WHEN u.is_called THEN u.last_value ELSE 0 END
			FROM kappactl.looked l, kappactl.updated u`).Scan(&looked, &updated); err != nil {
			t.Fatal(err)
		}
		select {
		case <-late:
			t.Fatalf("%d looks", looked)
		default:
		}
	}
	if updated != 0 {
		t.Errorf("%d UPDATE statements in %d looks", updated, looked)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// The answer to a claim can be lost with its connection: the row names the agent, which does not know. Its lease is not
// renewed, so the item is claimed again.
func TestAnItemThatItsOwnerDoesNotKnowOfIsClaimedAgain(t *testing.T) {
	pool, _ := pgtest.New(t)
	exec(t, pool, errandTable)
	exec(t, pool, `INSERT INTO kappactl.errand VALUES (1, 7, 'a', clock_timestamp() + interval '3 seconds')`)
	w := newWork()
	var claims []int64
	errand := agent.Work{
		Name: "errand", Table: "kappactl.errand", Open: "true",
		Run: func(ctx context.Context, id, claim int64) error {
			claims = append(claims, claim)
			return w.item("errand")(ctx, id, claim)
		},
	}
	_, stop := start(t, pool, w, agent.Config{ID: "a", Lease: 300 * time.Millisecond}, errand)
	await(t, w.begins, "errand 1")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if len(claims) == 0 || claims[0] != 8 {
		t.Errorf("claims %v, want 8 first", claims)
	}
}
