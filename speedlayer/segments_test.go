package speedlayer

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
)

func TestCutTilesTheRangeEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 1<<40).Draw(t, "from")
		limit := rapid.Int64Range(0, 6_000_000).Draw(t, "limit")
		length := rapid.Int64Range(0, 20_000).Draw(t, "length")
		if limit == 0 || limit > 50_000 {
			length *= 1_000
		}
		whole := job.Range{From: from, To: from + length}
		got := cut(whole, limit)
		if wrong := untiled(whole, got); len(wrong) != 0 {
			t.Fatalf("cut(%v, %d) leaves %v", whole, limit, wrong)
		}
		if limit == 0 {
			limit = maxSegment
		}
		limit = min(limit, largeSegment)
		shortest, longest := int64(1<<62), int64(0)
		for _, r := range got {
			shortest, longest = min(shortest, r.Len()), max(longest, r.Len())
		}
		if longest > limit || (len(got) > 0 && (shortest < 1 || longest-shortest > 1)) {
			t.Fatalf("cut(%v, %d): lengths from %d to %d", whole, limit, shortest, longest)
		}
		if want := (length + limit - 1) / limit; int64(len(got)) != want {
			t.Fatalf("cut(%v, %d): %d segments, want %d", whole, limit, len(got), want)
		}
	})
}

func TestSegmentsOfAGenerationAreLargeWhereItsRowsAreFew(t *testing.T) {
	for _, c := range []struct {
		rows, offsets int64
		workers       int
		want          int64
	}{
		{-1, 10_000_000, 2, maxSegment}, // not known yet
		{72_000, 10_000_000, 2, 2_500_000},
		{72_000, 10_000_000, 0, maxSegment}, // there may be eight workers
		{72_000, 1_000_000_000, 0, largeSegment},
		{72_000, 100_000, 2, maxSegment},
		{1_000_000, 10_000_000, 2, maxSegment}, // each row of ten records
	} {
		if got := segmentFor(c.rows, c.offsets, c.workers); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestUntiledFindsWhatIsMissingTwiceOrOutside(t *testing.T) {
	for name, c := range map[string]struct {
		whole job.Range
		have  []job.Range
		want  []job.Range
	}{
		"tiled":          {job.Range{From: 3, To: 9}, []job.Range{{From: 3, To: 5}, {From: 5, To: 9}}, nil},
		"empty":          {job.Range{From: 3, To: 3}, nil, nil},
		"nothing done":   {job.Range{From: 3, To: 9}, nil, []job.Range{{From: 3, To: 9}}},
		"hole in front":  {job.Range{From: 3, To: 9}, []job.Range{{From: 4, To: 9}}, []job.Range{{From: 3, To: 4}}},
		"hole inside":    {job.Range{From: 3, To: 9}, []job.Range{{From: 3, To: 5}, {From: 6, To: 9}}, []job.Range{{From: 5, To: 6}}},
		"hole behind":    {job.Range{From: 3, To: 9}, []job.Range{{From: 3, To: 5}}, []job.Range{{From: 5, To: 9}}},
		"twice":          {job.Range{From: 3, To: 9}, []job.Range{{From: 3, To: 7}, {From: 5, To: 9}}, []job.Range{{From: 5, To: 7}}},
		"one in another": {job.Range{From: 3, To: 9}, []job.Range{{From: 3, To: 9}, {From: 5, To: 6}}, []job.Range{{From: 5, To: 6}}},
		"outside":        {job.Range{From: 3, To: 9}, []job.Range{{From: 2, To: 11}}, []job.Range{{From: 2, To: 3}, {From: 9, To: 11}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, untiled(c.whole, c.have)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUntiledSeesAnyLostOrDoubledSegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Int64Range(2, 5_000).Draw(t, "length")
		whole := job.Range{From: 10, To: 10 + length}
		parts := cut(whole, rapid.Int64Range(1, length).Draw(t, "limit"))
		i := rapid.IntRange(0, len(parts)-1).Draw(t, "segment")
		if wrong := untiled(whole, slices.Delete(slices.Clone(parts), i, i+1)); len(wrong) != 1 || wrong[0] != parts[i] {
			t.Fatalf("without %v: %v", parts[i], wrong)
		}
		if wrong := untiled(whole, slices.Insert(slices.Clone(parts), i, parts[i])); len(wrong) != 1 || wrong[0] != parts[i] {
			t.Fatalf("with %v twice: %v", parts[i], wrong)
		}
	})
}

func TestInterleaveTakesTheOldestOfEachPartitionFirst(t *testing.T) {
	got := interleave([][]string{{"a0", "a1", "a2"}, nil, {"b0"}, {"c0", "c1"}})
	if diff := cmp.Diff([]string{"a0", "b0", "c0", "a1", "c1", "a2"}, got); diff != "" {
		t.Error(diff)
	}
}
