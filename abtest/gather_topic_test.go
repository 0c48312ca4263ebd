package abtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// log is a topic of two partitions in memory.
type log struct {
	parts [2][]TopicRecord
	most  int // records of a partition that one read returns; 0: all
	err   error
}

func (l *log) add(partition int32, at time.Time, value string) {
	p := &l.parts[partition]
	*p = append(*p, TopicRecord{Partition: partition, Offset: int64(len(*p)), At: at, Value: []byte(value)})
}

func (l *log) Read(_ context.Context, _ string, next map[int32]int64, _ time.Time) ([]TopicRecord, []TopicPart, error) {
	var out []TopicRecord
	var parts []TopicPart
	for i, all := range l.parts {
		rest := all[next[int32(i)]:]
		if l.most > 0 && len(rest) > l.most {
			rest = rest[:l.most]
		}
		out = append(out, rest...)
		end := next[int32(i)] + int64(len(rest))
		parts = append(parts, TopicPart{Partition: int32(i), Next: end, AtEnd: int(end) == len(all)})
	}
	return out, parts, l.err
}

func TestRewardsOfATopicCountOnce(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	topic := &log{}
	x.run.Topics = topic
	e := tried(job.ABTest)
	e.Reward.Kind, e.Reward.Window = job.Gaussian, time.Hour
	e.Reward.Source = job.RewardSource{Kafka: "rewards", Fields: &job.RewardFields{Subject: "user", Value: "value", At: "ts"}}
	x.begins(e)
	x.exposedAt("v2", x.now, "42", "b")
	ts := x.now.Add(time.Second)
	reward := func(user string, value int) string {
		return fmt.Sprintf(`{"user": %s, "value": %d, "ts": %q}`, user, value, ts.Format(time.RFC3339Nano))
	}
	topic.add(0, ts, reward(`42`, 1))
	topic.add(0, ts, reward(`"42"`, 2))
	topic.add(0, ts, `{"user": "42", "value": "3"}`)
	topic.add(1, ts, reward(`"b"`, 4))
	topic.add(1, ts, `not JSON`)
	counts := func() (sum float64, offsets map[string]int64, counts map[RewardCode]int64) {
		t.Helper()
		err := x.pool.QueryRow(t.Context(), `SELECT (SELECT sum(reward) FROM kappactl.assignment), offsets, counts FROM kappactl.reward_source`).
			Scan(&sum, &offsets, &counts)
		if err != nil {
			t.Fatal(err)
		}
		return sum, offsets, counts
	}
	x.exec(`ALTER TABLE kappactl.reward_source ADD CONSTRAINT full_disk CHECK (offsets = '{}')`) // the transaction ends between count and offset
	x.now = x.now.Add(time.Minute)
	x.looks()
	if sum, offsets, _ := counts(); sum != 0 || len(offsets) != 0 {
		t.Fatalf("half a transaction is kept: %v %v", sum, offsets)
	}
	x.exec(`ALTER TABLE kappactl.reward_source DROP CONSTRAINT full_disk`)
	for range 2 {
		x.looks()
		sum, offsets, by := counts()
		if sum != 7 || offsets["0"] != 3 || offsets["1"] != 2 || by[RewardAccepted] != 3 || by[RewardInvalid] != 2 {
			t.Errorf("%v %v %v", sum, offsets, by)
		}
	}
	// An agent that has read the same before the other stored it.
	x.exec(`UPDATE kappactl.reward_source SET offsets = '{}'`)
	x.looks()
	if sum, _, by := counts(); sum != 7 || by[RewardDuplicate] != 3 {
		t.Errorf("%v %v", sum, by)
	}
	topic.err = errors.New("no brokers")
	x.looks()
	if d, _ := (Store{}).Decisions(t.Context(), x.pool, "orders"); d[0].MessageCode != "ab_source" {
		t.Errorf("%+v", d[0])
	}
}

// The watermark is the least over the partitions; one that is read to its end holds nothing up.
func TestTheWatermarkOfATopic(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	topic := &log{most: 1}
	x.run.Topics = topic
	e := tried(job.ABTest)
	e.Reward.Source = job.RewardSource{Kafka: "rewards", Fields: &job.RewardFields{Subject: "user", Value: "value", At: "ts"}}
	x.begins(e)
	first, second := x.now.Add(time.Second), x.now.Add(2*time.Second)
	topic.add(0, first, `{}`)
	topic.add(0, second, `{}`)
	var marks []time.Time
	for range 2 {
		x.now = x.now.Add(time.Minute)
		x.looks()
		var mark time.Time
		if err := x.pool.QueryRow(t.Context(), `SELECT watermark FROM kappactl.reward_source`).Scan(&mark); err != nil {
			t.Fatal(err)
		}
		marks = append(marks, mark)
	}
	want := []time.Time{first, x.now}
	if !slices.EqualFunc(marks, want, func(a, b time.Time) bool { return a.Sub(b).Abs() < time.Millisecond }) {
		t.Errorf("%v, want %v", marks, want)
	}
}
