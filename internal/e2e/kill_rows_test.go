package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// appendedJob serves every record as a row; latestJob the latest of each user.
const (
	appendedJob = `job: clicks
source:
  topics: [%s]
  format: json
  columns: {user: text, page: integer, ts: timestamptz, ms: bigint}
query: |
  SELECT "user", page, ts, ms FROM source WHERE page >= %d
serve: {view: public.clicks_rows}
ready: {max_lag_time: 5s, stable_for: 0s}
live: {every: 20ms}
`
	latestSuffix = `serve: {view: public.clicks_rows, key: [user], order_by: ts}`
)

// TestKilledAgentLosesAndDoublesNoRow is TestKilledAgentLosesAndDoublesNothing for jobs without an aggregate, where a record
// that is written twice is a row more.
func TestKilledAgentLosesAndDoublesNoRow(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"append": appendedJob,
		"upsert": strings.Replace(appendedJob, "serve: {view: public.clicks_rows}", latestSuffix, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A real broker and the embedded one share the points.
			t.Run("embedded", func(t *testing.T) {
				t.Parallel()
				killedRows(t, kafkatest.Fake(t), text, "segment.before_commit", "live.before_commit", "deploy.filled")
			})
			t.Run("kafka", func(t *testing.T) {
				t.Parallel()
				killedRows(t, kafkatest.Real(t), text, "segment.staged", "live.after_commit", "live.upserted")
			})
		})
	}
}

func killedRows(t *testing.T, brokers []string, text string, points ...string) {
	t.Helper()
	w := newWorld(t, brokers)
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, brokers, topic, 4, nil)
	for round, point := range points {
		produceClicks(t, brokers, topic, round*5_000, 5_000)
		killed := 0
		if strings.HasPrefix(point, "live") {
			killed = w.killedInLive(point)
		} else {
			killed = w.killedInReplay(fmt.Sprintf(text, topic, round), point)
		}
		if killed == 0 || t.Failed() {
			t.Fatalf("round %d: killed %d at %s", round, killed, point)
		}
	}
}
