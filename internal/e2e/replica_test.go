package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestSoakAReplayGoesEasyOnAReplicaThatIsBehind replays into a server with a real streaming replica, whose replay stands still until
// it is over the limit of 10 s, and then goes on.
func TestSoakAReplayGoesEasyOnAReplicaThatIsBehind(t *testing.T) {
	if !soak {
		t.Skip("waits for a replica to fall 10 s behind: part of make soak")
	}
	t.Parallel()
	server := pgtest.StartOwn(t)
	replica, err := pg.Open(t.Context(), pg.Config{DSN: server.Replica(t, "east")})
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Close()
	w := newWorld(t, kafkatest.Fake(t))
	w.on(server.DSN)
	topic := kafkatest.Name("pageviews")
	kafkatest.Topic(t, w.brokers, topic, 4, nil)
	const records = 400_000 // 67 MB: 33 s for two workers that read a MiB a second
	kafkatest.ProduceMany(t, w.brokers, records, func(i int) *kgo.Record { return pageview(topic, i) },
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	w.serve()
	if _, err := replica.Exec(t.Context(), `SELECT pg_wal_replay_pause()`); err != nil {
		t.Fatal(err)
	}
	w.exec(`CREATE TABLE written AS SELECT generate_series(1, 1000) AS n`)
	kafkatest.Until(t, "the replica is over 10 s behind", func() bool {
		return w.sum(`SELECT count(*) FROM pg_stat_replication WHERE application_name = 'east' AND replay_lag > interval '11 seconds'`) == 1
	})
	began := time.Now()
	done := make(chan outcome, 1)
	go func() { done <- w.run("deploy", w.file("pageviews.yaml", fmt.Sprintf(pageviewsJob, topic))) }()
	var status string
	kafkatest.Until(t, "status says why the replay is slow", func() bool {
		status = w.run("status", "pageviews", "--output", "json").stdout
		return strings.Contains(status, "replica east is")
	})
	t.Log(tail(status, 12))
	kafkatest.Until(t, "ten seconds of the brake", func() bool { return time.Since(began) > 10*time.Second })
	read := w.sum(`SELECT coalesce(sum(bytes), 0)::bigint FROM kappactl.segment WHERE state = 'done'`)
	rate := w.sum(`SELECT coalesce(sum(bytes_per_second), 0)::bigint FROM kappactl.pace`)
	t.Logf("%.1f s after the deploy %d bytes of segments are done, %d bytes a second are read", time.Since(began).Seconds(), read, rate)
	select {
	case o := <-done:
		t.Fatalf("the replay did not wait for the replica: exit %d\n%s", o.code, o.stdout)
	default:
	}
	if _, err := replica.Exec(t.Context(), `SELECT pg_wal_replay_resume()`); err != nil {
		t.Fatal(err)
	}
	resumed := time.Now()
	if o := <-done; o.code != 0 {
		t.Fatalf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	t.Logf("done %.1f s after the replica went on", time.Since(resumed).Seconds())
	w.equal("pageviews")
	kafkatest.Until(t, "the replica has it all", func() bool {
		var views int64
		err := replica.QueryRow(t.Context(), `SELECT sum(views)::bigint FROM pageviews_hourly`).Scan(&views)
		return err == nil && views == records
	})
}
