package sample_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/sample"
)

func TestMain(m *testing.M) {
	leaktest.Main(func() int {
		defer kafkatest.Stop()
		return m.Run()
	})
}

// world is a topic of two partitions with 3,000 and 100 records.
func world(t *testing.T, brokers []string) (*sample.Reader, []job.Frozen) {
	t.Helper()
	topic := kafkatest.Name("sampled")
	kafkatest.Topic(t, brokers, topic, 2, nil)
	for partition, n := range map[int32]int{0: 3000, 1: 100} {
		kafkatest.ProduceMany(t, brokers, n, func(i int) *kgo.Record {
			return &kgo.Record{Topic: topic, Partition: partition, Key: []byte("12"), Value: []byte(fmt.Sprintf("%08d", i))}
		})
	}
	admin, err := kafka.NewAdmin(kafka.Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	facts, err := admin.Offsets(t.Context(), []string{topic})
	if err != nil {
		t.Fatal(err)
	}
	var ranges []job.Frozen
	for _, p := range facts {
		ranges = append(ranges, job.Frozen{Partition: p.Partition, Range: job.Range{From: p.Start, To: p.LastStable}, LeaderEpoch: p.LeaderEpoch})
	}
	r, err := sample.NewReader(kafka.Config{Brokers: brokers}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, ranges
}

func TestOldestAndNewestAreThoseOfEachPartition(t *testing.T) {
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		r, ranges := world(t, brokers)
		oldest, err := r.Oldest(t.Context(), ranges, 400)
		if err != nil {
			t.Fatal(err)
		}
		newest, err := r.Newest(t.Context(), ranges, 400)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, list := range [][]sample.Piece{oldest, newest} {
			for _, p := range list {
				got = append(got, fmt.Sprintf("%d %s %d", p.ID, p.Range, len(p.Records)))
			}
		}
		want := "0 [0,200) 200, 1 [0,100) 100, 0 [2800,3000) 200, 1 [0,100) 100"
		if strings.Join(got, ", ") != want {
			t.Errorf("%s, want %s", strings.Join(got, ", "), want)
		}
		if n := len(sample.Records(oldest, newest)); n != 500 {
			t.Errorf("%d records, want 500: those of partition 1 once", n)
		}
	})
}

func TestSpreadIsOverTheWholeRange(t *testing.T) {
	r, ranges := world(t, kafkatest.Fake(t))
	pieces, err := r.Spread(t.Context(), ranges, 5, 20)
	if err != nil {
		t.Fatal(err)
	}
	var starts []string
	for _, p := range pieces {
		if len(p.Records) != 20 || p.Len() != 20 || p.Bytes != 200 {
			t.Errorf("%s: %d records, %d offsets, %d bytes", p.Range, len(p.Records), p.Len(), p.Bytes)
		}
		if p.ID == 0 {
			starts = append(starts, fmt.Sprint(p.From))
		}
	}
	if got := strings.Join(starts, " "); got != "0 600 1200 1800 2400" {
		t.Errorf("pieces of partition 0 start at %s", got)
	}
}

func TestAnEmptyRangeGivesNothing(t *testing.T) {
	r, ranges := world(t, kafkatest.Fake(t))
	for i := range ranges {
		ranges[i].To = ranges[i].From
	}
	pieces, err := r.Oldest(t.Context(), ranges, 10)
	if err != nil || len(sample.Records(pieces)) != 0 {
		t.Errorf("%v, %v", pieces, err)
	}
}
