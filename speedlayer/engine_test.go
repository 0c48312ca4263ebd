package speedlayer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

func TestReplayThenLiveEqualsOnePass(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		r := newRig(t, brokers, 3, sums)
		for p := range int32(3) {
			r.produce(p, int(p)*1000, 1500)
		}
		r.startReplay(400)
		r.agent("a", nil)
		r.produce(0, 9000, 300) // what arrives during the replay
		r.build()
		r.produce(1, 20000, 500)
		r.caughtUp()
		r.equal()
		if n := r.one(`SELECT sum(records) FROM kappactl.position`); n != 5300 {
			t.Errorf("%d records counted, want 5300", n)
		}
	})
}

func TestFilteredRecordsMoveThePositionAndAreNotReadAgain(t *testing.T) { // L12
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, `SELECT k, count(*) AS n FROM source WHERE coalesce(v, 0) > 1000000000 GROUP BY k`)
	r.produce(0, 0, 1000)
	r.startReplay(300)
	stop := r.agent("a", nil)
	r.build()
	r.produce(0, 1000, 1000)
	r.caughtUp()
	stop()
	if got := r.served(); len(got) != 0 {
		t.Errorf("served %v, want nothing", got)
	}
	if n := r.one(`SELECT records FROM kappactl.position`); n != 2000 {
		t.Errorf("%d records counted, want 2000", n)
	}
	r.agent("b", nil)
	r.produce(0, 2000, 10)
	r.caughtUp()
	if n := r.one(`SELECT records FROM kappactl.position`); n != 2010 {
		t.Errorf("%d records counted after a restart, want 2010: something was read again", n)
	}
}

func TestAPlainComparisonFilters(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, `SELECT k, count(*) AS n, sum(v) AS total, min(v) AS low, max(v) AS high FROM source WHERE v >= 0 GROUP BY k`)
	r.produce(0, 0, 500)
	r.startReplay(200)
	r.agent("a", nil)
	r.build()
	r.produce(0, 1000, 500)
	r.caughtUp()
	r.equal()
}

func TestAQueryThatNeverReadsItsInputStillMoves(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, `SELECT k, count(*) AS n FROM source WHERE 1 = 0 GROUP BY k`)
	r.produce(0, 0, 100)
	kafkatest.Produce(t, r.brokers, r.topic, 0, `not json`)
	r.startReplay(0)
	r.agent("a", nil)
	r.build()
	r.produce(0, 0, 100)
	kafkatest.Produce(t, r.brokers, r.topic, 0, `not json either`)
	r.caughtUp()
	if n := r.one(`SELECT count(*) FROM kappactl.dead_letter`); n != 2 {
		t.Errorf("%d dead letters, want 2: every record is judged", n)
	}
}

func TestTransactionsMarkersAndAbortedRecords(t *testing.T) { // L01, R11
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		r := newRig(t, brokers, 2, sums)
		transactions := func(from int) {
			x := kafkatest.Begin(t, brokers)
			for i := range 20 {
				for p := range int32(2) {
					x.Produce(t, record(r.topic, p, from+i*10), record(r.topic, p, from+i*10+5))
				}
				x.End(t, kgo.TransactionEndTry(i%10 >= 3)) // 30 % are aborted
			}
		}
		transactions(1000)
		for p := range int32(2) {
			end, _ := kafkatest.Ends(t, brokers, r.topic, p)
			kafkatest.AwaitStable(t, brokers, r.topic, p, end)
		}
		r.startReplay(7)
		r.agent("a", nil)
		r.build()
		transactions(5000)
		for p := range int32(2) {
			end, _ := kafkatest.Ends(t, brokers, r.topic, p)
			kafkatest.AwaitStable(t, brokers, r.topic, p, end)
		}
		r.caughtUp()
		r.equal()
		if n := r.one(`SELECT sum(records) FROM kappactl.position`); n != 2*2*14*2 {
			t.Errorf("%d records counted, want %d", n, 2*2*14*2)
		}
	})
}

func TestACompactedTopicIsReadByPosition(t *testing.T) { // L04
	t.Parallel()
	brokers, topic := kafkatest.Real(t), kafkatest.Name("speed")
	kafkatest.Topic(t, brokers, topic, 1, map[string]string{
		"cleanup.policy": "compact", "delete.retention.ms": "0", "segment.ms": "300", "min.cleanable.dirty.ratio": "0.01",
		"min.compaction.lag.ms": "0", "max.compaction.lag.ms": "300",
	})
	r := newRigOn(t, brokers, topic, sums)
	put := func(key string, v int) {
		kafkatest.ProduceKeyed(t, brokers, topic, 0, [2][]byte{[]byte(key), fmt.Appendf(nil, `{"k":%q,"v":%d}`, key, v)})
	}
	for v := range 4 {
		put("k", v)
	}
	kafkatest.ProduceKeyed(t, brokers, topic, 0, [2][]byte{[]byte("k"), nil})
	others := 0
	kafkatest.Until(t, "the broker has compacted", func() bool {
		others++
		put(fmt.Sprint("other-", others), 1) // rolls the active segment, which the cleaner leaves alone
		return r.committed()[0].Offset >= 5
	})
	r.startReplay(2) // the first segments hold no record any more
	r.agent("a", nil)
	r.build()
	put("k", 9)
	r.caughtUp()
	r.equal()
	if n := r.one(`SELECT count(*) FROM kappactl.segment WHERE records = 0`); n < 2 {
		t.Errorf("%d segments without records, want those that compaction emptied", n)
	}
}

func TestPositionsComeFromTheDatabaseNotFromTheGroup(t *testing.T) { // R06
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		r := newRig(t, brokers, 1, sums)
		r.startLive()
		stop := r.agent("a", nil)
		r.produce(0, 200, 25)
		r.caughtUp()
		client := kafkatest.Client(t, brokers)
		admin := kadm.NewClient(client)
		var at int64 = -1
		kafkatest.Until(t, "the group shows the position to others' tools", func() bool {
			offsets, err := admin.FetchOffsets(t.Context(), r.group())
			if err != nil {
				return false
			}
			if o, ok := offsets.Lookup(r.topic, 0); ok {
				at = o.At
			}
			return at == 25
		})
		stop()
		if _, err := admin.DeleteGroup(t.Context(), r.group()); err != nil {
			t.Fatal(err)
		}
		r.produce(0, 300, 5)
		r.agent("b", nil)
		r.caughtUp()
		r.equal()
		if n := r.one(`SELECT records FROM kappactl.position`); n != 30 {
			t.Errorf("%d records, want 25 and exactly 5 more", n)
		}
	})
}

func record(topic string, partition int32, i int) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Value: value(i)}
}

func TestAPartitionThatAppearsLaterIsReadFromItsStart(t *testing.T) { // R04
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, sums)
	r.produce(0, 0, 50)
	r.startReplay(0)
	r.agent("a", nil)
	r.build()
	kafkatest.AddPartitions(t, r.brokers, r.topic, 3)
	r.produce(2, 100, 40)
	inTx(t, r.pool, func(tx *pg.Tx) error {
		return Store{}.Follow(t.Context(), tx, r.ref, job.Frozen{Partition: r.frozen(0)[2].Partition})
	})
	r.caughtUp()
	r.equal()
}

func TestTwoAgentsShareThePartitionsAndHandThemOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 4, sums)
	r.startLive()
	stopA := r.agent("a", nil)
	owners := func() string {
		return strings.Join(lines(t, r.pool, `SELECT coalesce(owner, '-') FROM kappactl.position ORDER BY partition`), "")
	}
	kafkatest.Until(t, "a has all", func() bool { return owners() == "(a)(a)(a)(a)" })
	r.agents.Store(2)
	r.agent("b", nil)
	kafkatest.Until(t, "both have two", func() bool {
		o := owners()
		return strings.Count(o, "(a)") == 2 && strings.Count(o, "(b)") == 2
	})
	for p := range int32(4) {
		r.produce(p, int(p)*100, 200)
	}
	r.caughtUp()
	r.agents.Store(1)
	stopA()
	kafkatest.Until(t, "b has all at once: a released what it held", func() bool { return owners() == "(b)(b)(b)(b)" })
	r.produce(0, 5000, 100)
	r.caughtUp()
	r.equal()
}

func TestPartitionsThatNobodyElseTakesAreTakenBeyondTheShare(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 3, sums)
	r.startLive()
	r.agents.Store(3) // two of them never come
	r.agent("a", nil)
	kafkatest.Until(t, "a has all", func() bool { return r.one(`SELECT count(*) FROM kappactl.position WHERE owner = 'a'`) == 3 })
	for p := range int32(3) {
		r.produce(p, 300, 50)
	}
	r.caughtUp()
	r.equal()
}

func TestRunEndsWhenThereIsNothingToDo(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.startLive()
	for name, end := range map[string]string{
		"paused": `UPDATE kappactl.version SET paused_at = now()`,
		"ended":  `UPDATE kappactl.version SET paused_at = NULL, phase = 'retired'`,
	} {
		exec(t, r.pool, `UPDATE kappactl.version SET paused_at = NULL, phase = 'live'`, nil)
		e := r.engine("a")
		done := make(chan error, 1)
		go func() { done <- e.Run(t.Context(), r.ref) }()
		kafkatest.Until(t, "the position is claimed", func() bool { return r.one(`SELECT count(*) FROM kappactl.position WHERE owner = 'a'`) == 1 })
		exec(t, r.pool, end, nil)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := r.one(`SELECT count(*) FROM kappactl.position WHERE owner IS NOT NULL`); n != 0 {
			t.Errorf("%s: claims were not released", name)
		}
	}
}

// group is the consumer group of the version.
func (r *rig) group() string {
	r.t.Helper()
	of, err := pg.Identity(r.t.Context(), r.pool)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.ref.Group(of)
}

// TestAVersionHasItsGroupBeforeItsFirstRecord: a quiet topic was invisible to lag tools.
func TestAVersionHasItsGroupBeforeItsFirstRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.startLive()
	r.agent("a", nil)
	admin := kadm.NewClient(kafkatest.Client(t, r.brokers))
	kafkatest.Until(t, "the group has an offset", func() bool {
		offsets, err := admin.FetchOffsets(t.Context(), r.group())
		if err != nil {
			return false
		}
		o, ok := offsets.Lookup(r.topic, 0)
		return ok && o.At == 0
	})
}
