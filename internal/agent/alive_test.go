package agent_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestAnAgentWhoseHeartbeatIsOverdueCountsNowhereAsAlive: as one that is cut off from the database leaves its row.
func TestAnAgentWhoseHeartbeatIsOverdueCountsNowhereAsAlive(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	const within = 5 * time.Second
	for id, age := range map[string]time.Duration{"cut off": within + time.Second, "living": 0} {
		exec(t, pool, `INSERT INTO kappactl.agent (id, host, pid, release, capacity, dialects, heartbeat_at)
			VALUES ($1, 'h', 1, 'r', 1, '{1}', clock_timestamp() - $2 * interval '1 second')`, id, age.Seconds())
	}
	if n, err := agent.Alive(t.Context(), pool, within); err != nil || n != 1 {
		t.Errorf("%d alive (%v)", n, err)
	}
	if ids, err := agent.IDs(t.Context(), pool, within); err != nil || !slices.Equal(ids, []string{"living"}) {
		t.Errorf("share the work: %v (%v)", ids, err)
	}
	if err := agent.Beats(t.Context(), pool, "cut off", within); err == nil {
		t.Error("the one that is cut off is ready")
	}
	if err := agent.Beats(t.Context(), pool, "living", within); err != nil {
		t.Error(err)
	}
}
