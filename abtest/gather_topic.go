package abtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// TopicRecord is a record of a topic with rewards.
type TopicRecord struct {
	Partition int32
	Offset    int64
	At        time.Time
	Value     []byte
}

// TopicPart is what was read of one partition.
type TopicPart struct {
	Partition int32
	Next      int64 // the offset after what was read
	AtEnd     bool  // nothing more was there when the read began
}

// Topics read rewards from a broker.
type Topics interface {
	// Read reads committed records from the offsets on; a partition without one is read from its first record that is not
	// older than since.
	Read(ctx context.Context, topic string, next map[int32]int64, since time.Time) ([]TopicRecord, []TopicPart, error)
}

var errNoTopics = errors.New("this agent reads no topics of rewards")

// gatherTopic reads what the topic has and stores it with its offsets in one transaction.
func (w *watch) gatherTopic(ctx context.Context, e *row) error {
	if w.r.Topics == nil {
		return errNoTopics
	}
	source := e.Settings.Reward.Source
	var stored map[string]int64
	err := w.r.Pool.QueryRow(ctx, `SELECT offsets FROM kappactl.reward_source WHERE job = $1 AND run = $2`, e.Job,
		e.Run).Scan(&stored)
	if err != nil {
		return fmt.Errorf("read the offsets of the rewards of %s: %w", e.Job, err)
	}
	next := map[int32]int64{}
	for partition, offset := range stored {
		n, err := strconv.ParseInt(partition, 10, 32)
		if err != nil {
			return fmt.Errorf("partition %q of the rewards of %s: %w", partition, e.Job, err)
		}
		next[int32(n)] = offset
	}
	at, err := w.r.clock(ctx, w.r.Pool)
	if err != nil {
		return err
	}
	records, parts, err := w.r.Topics.Read(ctx, source.Kafka, next, e.StartedAt)
	if err != nil {
		return err
	}
	rewards := make([]Reward, len(records))
	newest := map[int32]time.Time{}
	for i, rec := range records {
		rewards[i] = rewardOf(rec, source)
		if t := newest[rec.Partition]; rec.At.After(t) {
			newest[rec.Partition] = rec.At
		}
	}
	return w.store(ctx, e, rewards, func(b *book) {
		b.Now = at
		b.advance(parts, newest, at, stored)
	})
}

// advance notes how far a topic has been read. A transaction that finds other offsets than those it read from changes
// nothing: another agent has stored these rewards. The watermark is the least over the partitions of the newest
// record's time; one that was read to its end counts as read up to the time of the read.
func (b *book) advance(parts []TopicPart, newest map[int32]time.Time, at time.Time, from map[string]int64) {
	if !maps.Equal(orEmpty(b.Offsets), orEmpty(from)) {
		return
	}
	offsets, times := map[string]int64{}, map[string]time.Time{}
	var mark time.Time
	for i, p := range parts {
		name := strconv.Itoa(int(p.Partition))
		offsets[name] = p.Next
		t := b.Times[name]
		if n := newest[p.Partition]; n.After(t) {
			t = n
		}
		if p.AtEnd {
			t = at
		}
		times[name] = t.UTC()
		if i == 0 || t.Before(mark) {
			mark = t
		}
	}
	b.Offsets, b.Times, b.ReadAt = offsets, times, &at
	if len(parts) > 0 && !mark.IsZero() && (b.Watermark == nil || mark.After(*b.Watermark)) {
		mark = mark.UTC()
		b.Watermark = &mark
	}
}

// rewardOf reads a record of JSON. What is none is RewardInvalid.
func rewardOf(rec TopicRecord, source job.RewardSource) Reward {
	var fields map[string]json.RawMessage
	if json.Unmarshal(rec.Value, &fields) != nil {
		return Reward{}
	}
	r := Reward{EventID: fmt.Sprintf("%s/%d/%d", source.Kafka, rec.Partition, rec.Offset), At: rec.At}
	var value *float64
	names := source.Fields
	ok := word(fields[names.Subject], &r.Subject) && json.Unmarshal(fields[names.Value], &value) == nil && value != nil
	if at, has := fields[names.At]; ok && has {
		ok = json.Unmarshal(at, &r.At) == nil
	}
	if ok && names.EventID != "" {
		ok = word(fields[names.EventID], &r.EventID)
	}
	if !ok {
		return Reward{}
	}
	r.Value = *value
	return r
}

// word reads a text, or a number as its digits: 42 and "42" are one subject.
func word(text json.RawMessage, to *string) bool {
	if json.Unmarshal(text, to) == nil {
		return true
	}
	var n json.Number
	if json.Unmarshal(text, &n) != nil {
		return false
	}
	*to = n.String()
	return true
}
