package reprocess_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// TestTheKeptTimeIsKnownOnlyWhereTheLogSaysSo: a log that has lost records, and holds none that is older than the kept time, may
// have lost some of that time.
func TestTheKeptTimeIsKnownOnlyWhereTheLogSaysSo(t *testing.T) {
	b := newBrokers(100, 100, 100, 100, 100)
	b.starts = []int64{0, 0, 60, 60, 100}
	kept := []int64{0, 40, 80, 60, 100}
	b.at = func(p int) int64 { return kept[p] }
	live, candidate := &job.Spec{}, &job.Spec{}
	live.Serve.Keep = 48 * time.Hour
	layout := job.Layout{Keep: &job.Keep{Column: "at", ByRecord: true}}
	candidate.Source.Topics = []string{"events"}
	look := func() map[int32]int64 {
		t.Helper()
		found, err := plan.Kept(t.Context(), b, plan.Keeping{Spec: live, Layout: layout}, plan.Keeping{Spec: candidate, Layout: layout}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		out := map[int32]int64{}
		for p, offset := range found {
			out[p.ID] = offset
		}
		return out
	}
	if got := look(); len(got) != 0 {
		t.Errorf("the candidate keeps everything: %v", got)
	}
	candidate.Serve.Keep = 24 * time.Hour
	if diff := cmp.Diff(map[int32]int64{0: 0, 1: 40, 2: 80}, look()); diff != "" {
		t.Error(diff)
	}
	layout.Keep.ByRecord = false
	if got := look(); len(got) != 0 {
		t.Errorf("rows are kept by another time than that of the records: %v", got)
	}
}
