package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestBehindATransactionPooler runs the whole life of a job, from init on, behind PgBouncer in transaction mode: with a
// handful of server connections for an agent and the commands, and with two.
func TestBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{8, 2} {
		t.Run(fmt.Sprintf("%d server connections", servers), func(t *testing.T) {
			t.Parallel()
			brokers := kafkatest.Fake(t)
			w := newWorld(t, brokers)
			w.vars = []string{"KAPPACTL_DSN=" + pgtest.Bouncer(t, w.dsn, servers)}
			topic := clicksTopic(t, brokers, 10_000)
			w.ok("init")
			first, second := w.serve(), w.serve()
			if out := w.ok("doctor"); !strings.Contains(out, "a connection pooler is in between") {
				t.Error(out)
			}
			w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))
			w.equal("clicks")
			produceClicks(t, brokers, topic, 10_000, 5000)
			w.ok("deploy", w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 100)))
			w.ok("promote", "clicks")
			produceClicks(t, brokers, topic, 15_000, 5000)
			first.kill() // its leases run out
			w.caughtUp("clicks")
			w.equal("clicks")
			w.ok("rollback", "clicks")
			w.caughtUp("clicks")
			w.equal("clicks")
			w.ok("promote", "clicks", "v2")
			w.ok("retire", "clicks", "v1", "--now", "--yes")
			w.goneFrom("clicks", "v1")
			w.equal("clicks")
			if text := second.log.String() + first.log.String(); containsAny(text, "42P05", "26000", "08P01", "prepared statement") {
				t.Errorf("an agent met a statement that is not there:\n%s", tail(text, 40))
			}
			w.leavesNoSessionState()
		})
	}
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// leavesNoSessionState looks at what transactions could have left on the server connections that clients share: locks and
// temporary relations.
func (w *world) leavesNoSessionState() {
	w.t.Helper()
	var locks, temporary int
	err := w.pool.QueryRow(w.t.Context(), `SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND pid IN (SELECT pid FROM pg_stat_activity WHERE state = 'idle')), (SELECT count(*) FROM pg_class WHERE relpersistence = 't')`).Scan(&locks, &temporary)
	if err != nil {
		w.t.Fatal(err)
	}
	if locks != 0 || temporary != 0 {
		w.t.Errorf("%d advisory locks and %d temporary relations are left on idle connections", locks, temporary)
	}
}
