package readiness_test

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// Retention does not delete what is archived; where the archiver has fallen behind, the deadline is the log's.
func TestAnArchivedOffsetHasNoDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := job.Partition{Topic: "orders", ID: 1}
	a := readiness.NewAges(now, []job.TopicFacts{{Name: "orders", RetentionMS: 1000, RetentionBytes: -1}})
	a.AddStep(p, 0, now.Add(time.Hour))
	if a.Deadline(p, 10) == nil {
		t.Fatal("no deadline without an archive")
	}
	a.SetArchived(map[job.Partition]job.Range{p: {From: 5, To: 50}})
	for offset, want := range map[int64]bool{4: true, 5: false, 49: false, 50: true} {
		if got := a.Deadline(p, offset); (got != nil) != want {
			t.Errorf("offset %d: %v", offset, got)
		}
	}
	if n := a.Archived(p, job.Range{From: 0, To: 20}); n != 15 {
		t.Errorf("%d of [0,20) are archived", n)
	}
	if at := a.Overtaken(job.Frozen{Partition: p, Range: job.Range{From: 5, To: 50}}, 10*time.Hour); at != nil {
		t.Errorf("a replay of archived offsets is overtaken at %s", at)
	}
}
