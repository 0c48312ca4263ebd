package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// click is one record of the clicks topic with a page that the job keeps.
func click(topic string, partition int32, i int) *kgo.Record {
	at := time.Date(2026, 2, 1, i%24, 0, 0, 0, time.UTC)
	return &kgo.Record{Topic: topic, Partition: partition, Key: fmt.Appendf(nil, "k%d", i%50), Value: fmt.Appendf(nil,
		`{"user":"u","page":%d,"ts":%q,"ms":%d}`, i%20, at.Format(time.RFC3339), i)}
}

// TestAbortedTransactionsLeaveNothing replays and follows a topic whose producer aborts three transactions in ten.
func TestAbortedTransactionsLeaveNothing(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		w := newWorld(t, brokers)
		topic := kafkatest.Name("clicks")
		kafkatest.Topic(t, brokers, topic, 2, nil)
		txn := kafkatest.Begin(t, brokers)
		committed := 0
		transactions := func(n int) {
			for i := range n {
				var records []*kgo.Record
				for j := range 100 {
					records = append(records, click(topic, int32(j%2), i*100+j))
				}
				txn.Produce(t, records...)
				end := kgo.TryCommit
				if i%10 < 3 {
					end = kgo.TryAbort
				} else {
					committed += len(records)
				}
				txn.End(t, end)
			}
		}
		transactions(20)
		w.serve()
		w.ok("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, 0)))
		transactions(20)
		kafkatest.Until(t, "the view counts what was committed", func() bool { return w.count() == committed })
		w.caughtUp("clicks")
		w.equalAfter(transacted, "three in ten are aborted", "clicks")
	})
}

// count is the number of clicks that the view shows.
func (w *world) count() (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), `SELECT coalesce(sum(clicks), 0)::bigint FROM clicks_hourly`).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestPartitionAddedInMidReplayIsRead adds a partition while a replay is under way and another while live.
func TestPartitionAddedInMidReplayIsRead(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		w := newWorld(t, brokers)
		topic := clicksTopic(t, brokers, 100_000)
		// The agent stands still with a segment in hand while the partition appears.
		stuck := w.serve("KAPPACTL_FAULT=segment.reading:1:stop")
		result := make(chan outcome, 1)
		go func() { result <- w.run("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, 0))) }()
		kafkatest.Until(t, "the agent stands still in a segment", stuck.stopped)
		kafkatest.AddPartitions(t, brokers, topic, 5)
		kafkatest.ProduceMany(t, brokers, 10, func(i int) *kgo.Record { return click(topic, 4, i) }, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		stuck.kill()
		w.serve()
		if o := <-result; o.code != 0 {
			t.Fatalf("deploy: exit %d\n%s%s", o.code, o.stdout, o.stderr)
		}
		kafkatest.Until(t, "the records of the new partition are in the view", func() bool { return w.count() == 100_010 })
		w.equalAfter(newPartition, "in mid replay", "clicks")
		kafkatest.AddPartitions(t, brokers, topic, 6)
		kafkatest.ProduceMany(t, brokers, 10, func(i int) *kgo.Record { return click(topic, 5, i) }, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		kafkatest.Until(t, "the records of the second new partition are in the view", func() bool { return w.count() == 100_020 })
		w.equalAfter(newPartition, "while following", "clicks")
	})
}

// TestBrokerRestartsUnderReplayAndLive kills and restarts a real broker while a version replays and while it follows.
func TestBrokerRestartsUnderReplayAndLive(t *testing.T) {
	t.Parallel()
	broker := kafkatest.StartReal(t)
	w := newWorld(t, broker.Brokers)
	topic := kafkatest.Name("clicks")
	kafkatest.CreateTopic(t, broker.Brokers, topic, 4, nil)
	produceClicks(t, broker.Brokers, topic, 0, 200_000)
	w.serve()
	result := make(chan outcome, 1)
	go func() { result <- w.run("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, 0))) }()
	kafkatest.Until(t, "the replay has begun", func() bool {
		var n int
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM kappactl.segment`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
	broker.Restart(t)
	if o := <-result; o.code != 0 {
		t.Fatalf("deploy over a restart of the broker: exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	w.equalAfter(brokerKilled, "in mid replay", "clicks")
	broker.Restart(t)
	produceClicks(t, broker.Brokers, topic, 200_000, 20_000)
	kafkatest.Until(t, "the live version has read on", func() bool { return w.count() == 220_000 })
	w.equalAfter(brokerKilled, "while following", "clicks")
}

// TestProducerThatNeverStopsDoesNotKeepAVersionFromCatchingUp deploys two versions under steady traffic.
func TestProducerThatNeverStopsDoesNotKeepAVersionFromCatchingUp(t *testing.T) {
	t.Parallel()
	embedded(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		w := newWorld(t, brokers)
		topic := clicksTopic(t, brokers, 50_000)
		w.serve()
		quit, stopped := make(chan struct{}), make(chan int)
		go func() {
			n := 50_000
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-quit:
					stopped <- n
					return
				case <-tick.C:
					produceClicks(t, brokers, topic, n, 100)
					n += 100
				}
			}
		}()
		w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))
		w.ok("deploy", w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 1)), "--promote", "auto")
		w.equal("clicks") // in mid traffic: verify takes one snapshot of positions and rows
		w.ok("rollback", "clicks")
		close(quit)
		total := <-stopped
		kafkatest.Until(t, "the view counts every record", func() bool { return w.count() == total })
		w.equal("clicks")
	})
}

// oneCommitted is a world whose topic holds one click, committed in a transaction: its last offset is a marker.
func oneCommitted(t *testing.T, brokers []string) (*world, string) {
	t.Helper()
	w := newWorld(t, brokers)
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, brokers, topic, 1, nil)
	kafkatest.Committed(t, brokers, topic, 0, string(click(topic, 0, 1).Value))
	// The broker writes the marker after it has answered the commit: what is produced next could come before it.
	kafkatest.AwaitStable(t, brokers, topic, 0, 2)
	return w, topic
}

// TestTransactionMarkerAtTheEndIsCaughtUp: the last offset of the partition is a marker, which no consumer ever sees.
func TestTransactionMarkerAtTheEndIsCaughtUp(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		w, topic := oneCommitted(t, brokers)
		w.serve()
		w.ok("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, 0)))
		w.caughtUp("clicks")
		var status struct {
			Versions []struct {
				Position   *int64 `json:"position"`
				LagRecords *int64 `json:"lag_records"`
			}
		}
		w.into(&status, "status", "clicks")
		if v := status.Versions[0]; v.Position == nil || *v.Position != 2 || v.LagRecords == nil || *v.LagRecords != 0 {
			t.Errorf("status: %+v, want position 2 and lag 0", status)
		}
		w.equalAfter(transacted, "the last offset of the log is a marker", "clicks")
	})
}
