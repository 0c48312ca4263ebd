package kafka

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// D16: stamps that a clock of nanoseconds does not hold come as they are in the log.
func TestStampsComeAsTheyAreInTheLog(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		parts := newTopic(t, brokers, 1, map[string]string{"message.timestamp.after.max.ms": "9223372036854775807"})
		stamps := []int64{1_700_000_000_000, 1_700_000_000_000_000, 0, 1_700_000_000, -1, 9_223_372_036_854, 9_223_372_036_855, 253_402_300_800_000}
		for i, at := range stamps {
			kafkatest.ProduceAt(t, brokers, parts[0].Topic, 0, at, nil, fmt.Append(nil, i))
		}
		r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: parts[0]})
		r.until(t, "all records have come", func() bool { return len(r.values[parts[0]]) == len(stamps) })
		if diff := cmp.Diff(stamps, r.stamps); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStampedUndoesTheWrappingOfNanoseconds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		ms := r.Int64N(1<<58) - 1<<57
		ms >>= r.IntN(50)
		if got := stamped(time.Unix(0, ms*1_000_000)).UnixMilli(); got != ms {
			t.Fatalf("%d came back as %d", ms, got)
		}
	}
}
