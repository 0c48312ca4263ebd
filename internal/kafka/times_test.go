package kafka

import (
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// R09: timestamps are not in the order of offsets. Whatever the moment asked for, no record stamped at or after it lies before the
// offset that a start at that moment begins at.
func TestNoRecordOfATimeOrLaterLiesBeforeItsOffset(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		stamps := []int64{1000, 5000, 2000, 9000, 3000, 9500, 100}
		base := time.Now().Add(-time.Hour).Truncate(time.Second)
		p := newTopic(t, brokers, 1, nil)[0]
		for i, ms := range stamps { // a batch each, as slow producers send them
			kafkatest.ProduceRecords(t, brokers, []*kgo.Record{{Topic: p.Topic, Timestamp: base.Add(time.Duration(ms) * time.Millisecond), Value: []byte(strconv.Itoa(i))}})
		}
		a := newAdmin(t, brokers)
		for _, ask := range []int64{0, 1000, 1001, 2000, 4000, 5000, 5001, 9000, 9001, 9500, 9501} {
			facts, err := a.OffsetsAt(t.Context(), []string{p.Topic}, base.Add(time.Duration(ask)*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			for offset, ms := range stamps {
				if ms >= ask && int64(offset) < facts[0].Start {
					t.Errorf("a start at %d begins at offset %d and leaves out offset %d of %d", ask, facts[0].Start, offset, ms)
				}
			}
			if ask > 9500 && facts[0].Start != int64(len(stamps)) {
				t.Errorf("a start behind every record begins at %d", facts[0].Start)
			}
		}
		kafkatest.DeleteRecords(t, brokers, p.Topic, 0, 2)
		for offset, want := range map[int64]int64{1: -1, 2: 2000, 3: 9000, 6: 100, 7: -1} {
			got, err := a.Times(t.Context(), map[job.Partition]int64{p: offset})
			if err != nil {
				t.Fatal(err)
			}
			at, known := got[p]
			if known != (want >= 0) || known && !at.Equal(base.Add(time.Duration(want)*time.Millisecond)) {
				t.Errorf("offset %d: %s %t, want %d", offset, at, known, want)
			}
		}
	})
}
