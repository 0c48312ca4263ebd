package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestPlanSaysHowMuchWALDeployWrites within a factor of two, on a server where nobody else writes; and that its time is an estimate.
func TestPlanSaysHowMuchWALDeployWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	w.dsn = pgtest.StartOwn(t).DSN
	var err error
	if w.pool, err = pg.Open(t.Context(), pg.Config{DSN: w.dsn}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pool.Close)
	topic := kafkatest.Name("pageviews")
	kafkatest.Topic(t, w.brokers, topic, 4, nil)
	kafkatest.ProduceMany(t, w.brokers, 100_000, func(i int) *kgo.Record { return pageview(topic, i) })
	w.serve()
	file := w.file("v1.yaml", fmt.Sprintf(hourlyJob, topic))
	var p planned
	w.into(&p, "plan", file)
	if text := w.ok("plan", file); !strings.Contains(text, " (estimated from a sample)") {
		t.Errorf("the time is not called an estimate:\n%s", text)
	}
	written := func() int64 { return w.sum("SELECT (pg_current_wal_lsn() - '0/0')::bigint") }
	before := written()
	w.ok("deploy", file)
	wrote := float64(written() - before)
	t.Logf("planned %.0f bytes of WAL, deploy wrote %.0f; planned %.1f s", p.Replay.WALBytes, wrote, p.Replay.ETASeconds)
	if p.Replay.WALBytes < wrote/2 || p.Replay.WALBytes > 2*wrote {
		t.Errorf("planned %.0f bytes of WAL, deploy wrote %.0f", p.Replay.WALBytes, wrote)
	}
	if p.Replay.ETASeconds <= 0 {
		t.Errorf("no time is said: %+v", p.Replay)
	}
}
