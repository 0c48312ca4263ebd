package speedlayer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// TestBatchesDeliverEachRecordOnceInOrder cuts batches at any limit and hold, commits some and loses others, moves
// positions by another hand, and counts what was delivered.
func TestBatchesDeliverEachRecordOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "partitions")
		logs, ends := make([][]*kgo.Record, n), make([]int64, n)
		all, delivered := make([]*owned, n), make([][]int64, n)
		for i := range all {
			start := rapid.Int64Range(0, 100).Draw(t, "start")
			ends[i] = start
			for range rapid.IntRange(0, 30).Draw(t, "records") {
				ends[i] += rapid.Int64Range(1, 4).Draw(t, "step") // markers and compacted records leave holes
				logs[i] = append(logs[i], &kgo.Record{Offset: ends[i] - 1})
			}
			ends[i] += rapid.Int64Range(0, 3).Draw(t, "tail")
			all[i] = &owned{partition: job.Partition{ID: int32(i)}, next: start, read: start}
		}
		for step := 0; ; step++ {
			if step > 5000 {
				t.Fatal("no progress")
			}
			done := true
			for i, o := range all {
				if to := min(ends[i], o.read+rapid.Int64Range(0, 20).Draw(t, "fetched")); to > o.read {
					var got []*kgo.Record
					for _, rec := range logs[i] {
						if rec.Offset >= o.read && rec.Offset < to {
							got = append(got, rec)
						}
					}
					o.absorb(kafka.Fetched{Records: got, Next: to})
				}
				done = done && o.next == ends[i]
				o.stopAt(nil)
				if rapid.IntRange(0, 3).Draw(t, "held") == 0 && step < 100 {
					at := o.next + rapid.Int64Range(0, 5).Draw(t, "hold")
					o.stopAt(&at)
				}
			}
			if done {
				break
			}
			limit := rapid.IntRange(1, 40).Draw(t, "limit")
			parts := cutBatch(all, limit)
			if countRecords(parts) > limit {
				t.Fatalf("%d records in a batch of %d", countRecords(parts), limit)
			}
			if step < 200 && rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
				continue
			}
			for _, p := range parts {
				i := p.partition.ID
				if p.from != p.next || p.to <= p.from || p.to > p.read || (p.hold != nil && p.to > *p.hold) {
					t.Fatalf("part [%d,%d) of a partition at %d, read to %d, hold %v", p.from, p.to, p.next, p.read, p.hold)
				}
				for _, rec := range p.records {
					if rec.Offset < p.from || rec.Offset >= p.to {
						t.Fatalf("record %d in part [%d,%d)", rec.Offset, p.from, p.to)
					}
					delivered[i] = append(delivered[i], rec.Offset)
				}
				p.rewind(p.to)
			}
		}
		for i := range logs {
			var want []int64
			for _, rec := range logs[i] {
				want = append(want, rec.Offset)
			}
			if !slices.Equal(want, delivered[i]) {
				t.Fatalf("partition %d: delivered %v, want %v", i, delivered[i], want)
			}
			if all[i].bytes != 0 || len(all[i].records) != 0 {
				t.Fatalf("partition %d still holds %d bytes", i, all[i].bytes)
			}
		}
	})
}

func TestJudgeComparesAPartWithItsRow(t *testing.T) {
	p := part{owned: &owned{claim: 4}, from: 10, to: 20}
	at := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		row  *lockedRow
		want outcome
	}{
		"fits":                {&lockedRow{Claim: 4, Next: 10}, fits},
		"no row":              {nil, lost},
		"another claim":       {&lockedRow{Claim: 5, Next: 10}, lost},
		"another position":    {&lockedRow{Claim: 4, Next: 11}, moved},
		"a fault":             {&lockedRow{Claim: 4, Next: 10, Fault: "gap"}, faulted},
		"a hold in between":   {&lockedRow{Claim: 4, Next: 10, Hold: at(19)}, tooFar},
		"a hold at the start": {&lockedRow{Claim: 4, Next: 10, Hold: at(10)}, tooFar},
		"a hold at the end":   {&lockedRow{Claim: 4, Next: 10, Hold: at(20)}, fits},
	} {
		if got := judge(p, c.row); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestRewindBeginsAnewWhereTheRecordsDoNotReach(t *testing.T) {
	for name, c := range map[string]struct{ to, read, records int64 }{
		"forward inside":  {7, 10, 3},
		"to the end":      {10, 10, 0},
		"beyond the end":  {15, 15, 0},
		"back":            {3, 3, 0},
		"where it stands": {5, 10, 5},
	} {
		o := &owned{next: 5, read: 5}
		var got []*kgo.Record
		for i := range int64(5) {
			got = append(got, &kgo.Record{Offset: 5 + i})
		}
		o.absorb(kafka.Fetched{Records: got, Next: 10})
		o.rewind(c.to)
		if o.next != c.to || o.read != c.read || int64(len(o.records)) != c.records || o.bytes != int(c.records)*recordBytes(got[0]) {
			t.Errorf("%s: next %d, read %d, %d records of %d bytes", name, o.next, o.read, len(o.records), o.bytes)
		}
	}
}

func TestAgentsConvergeOnFairShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, agents := rapid.IntRange(1, 20).Draw(t, "partitions"), rapid.IntRange(1, 6).Draw(t, "agents")
		held, shares, names := make([]int, agents), make([]share, agents), make([]string, agents)
		for i := range names {
			names[i] = fmt.Sprintf("agent %d", i)
		}
		free, now := total, time.Unix(0, 0)
		if rapid.Bool().Draw(t, "one has all") {
			held[0], free = total, 0
		}
		for range 20 {
			now = now.Add(100 * time.Millisecond)
			for i := range agents {
				share := fair(total, names, names[i], job.Ref{Job: "j", Number: 1})
				n := shares[i].want(now, time.Second, agents, share, free, held[i])
				if n > free || -n > held[i] {
					t.Fatalf("agent %d wants %d of %d free, holding %d", i, n, free, held[i])
				}
				held[i], free = held[i]+n, free-n
			}
		}
		if free != 0 || slices.Max(held) > (total+agents-1)/agents {
			t.Fatalf("%d free, held %v", free, held)
		}
	})
}

func TestManyVersionsOfFewPartitionsAreSharedEvenly(t *testing.T) {
	agents := []string{"a", "b", "c"}
	got := map[string]int{}
	for n := range 999 {
		ref := job.Ref{Job: "j", Number: job.Number(n)}
		for _, a := range agents {
			got[a] += fair(1, agents, a, ref)
		}
	}
	if got["a"]+got["b"]+got["c"] != 999 || min(got["a"], got["b"], got["c"]) < 250 {
		t.Errorf("of 999 versions of one partition: %v", got)
	}
	if n := fair(3, agents, "new", job.Ref{Job: "j"}); n != 1 {
		t.Errorf("an agent that is not listed yet takes %d of 3", n)
	}
}

func TestBlameFindsExactlyTheRecordsThatFailAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bad := rapid.SliceOfN(rapid.Bool(), 0, 60).Draw(t, "bad")
		records := make([]int, len(bad))
		var want, got []int
		for i := range bad {
			records[i] = i
			if bad[i] {
				want = append(want, i)
			}
		}
		err := blame(records, ofData, func(some []int) error {
			for _, i := range some {
				if bad[i] {
					return fmt.Errorf("probe: %w", &dataError{errors.New("bad")})
				}
			}
			return nil
		}, func(i int, _ error) error { got = append(got, i); return nil })
		if err != nil || !slices.Equal(want, got) {
			t.Fatalf("found %v, %v; want %v", got, err, want)
		}
	})
}

func TestBlameEndsWithAnErrorThatNoRecordIsToBlameFor(t *testing.T) {
	away := errors.New("away")
	err := blame([]int{1, 2}, ofData, func([]int) error { return away }, func(int, error) error { t.Error("a record is blamed"); return nil })
	if !errors.Is(err, away) {
		t.Errorf("blame = %v", err)
	}
}

func TestFaultOfFetchErrors(t *testing.T) {
	p := job.Partition{Topic: "t", ID: 1}
	got := map[string]job.Fault{}
	for name, err := range map[string]error{
		"expired":      &kafka.GapError{Partition: p, Wanted: 3, Start: 10, End: 50},
		"cut off":      &kafka.GapError{Partition: p, Wanted: 60, Start: 10, End: 50},
		"written anew": &kafka.GapError{Partition: p, Wanted: 60, Start: -1, End: 40, Cut: true},
		"anew":         &kafka.RecreatedError{Partition: p},
		"gone":         &kafka.MissingTopicError{Topic: "t"},
		"large":        &kafka.TooLargeError{Partition: p, Offset: 9},
		"passing":      errors.New("leader away"),
	} {
		f := faultOf(fmt.Errorf("fetch: %w", err), 7)
		f.Detail = ""
		got[name] = f
	}
	want := map[string]job.Fault{
		"expired":      {Kind: job.FaultGap, From: 3, To: 10},
		"cut off":      {Kind: job.FaultGap, From: 50, To: 60},
		"written anew": {Kind: job.FaultGap, From: 40, To: 60},
		"anew":         {Kind: job.FaultRecreated, From: 7, To: 7},
		"gone":         {Kind: job.FaultMissing, From: 7, To: 7},
		"large":        {Kind: job.FaultTooLarge, From: 9, To: 10},
		"passing":      {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
