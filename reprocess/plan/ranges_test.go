package plan

import (
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

func TestSegmentsAreCutSmallerWhenRecordsAreLarge(t *testing.T) {
	p := job.PartitionFacts{Start: 0, End: 1_000_000}
	for size, want := range map[int64]int64{
		0: 0, 50 << 20: 0, 1 << 30: 62500, 1 << 40: segmentFloor,
	} {
		if got := splitAt(p, size); got != want {
			t.Errorf("%d bytes: %d, want %d", size, got, want)
		}
	}
}
