package reprocess_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Retention comes before the end of a slow replay: segments that go first are to be read first, and status, history and the warnings
// say so before anything is lost.
func TestRetentionThatWillOvertakeAReplayIsSaidBefore(t *testing.T) {
	w := newWorld(t, 3_000_000)
	w.alone = true
	w.brokers.set(func(b *brokers) {
		b.flags = job.TopicFacts{RetentionMS: time.Hour.Milliseconds(), RetentionBytes: -1}
		b.at = func(int) int64 { return 1_500_000 } // half of it is due now
	})
	w.run(1, nil)
	w.stage("aaa")
	w.await("the alarm", func() bool {
		v := w.version(1)
		return len(v.Warnings) > 0 && v.RetentionDeadline != nil && v.Partitions[0].RetentionDeadline != nil
	})
	has(t, w.version(1).Warnings[0], "retention deletes what is unread of events/0 now")
	var first, dated int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE from_offset < 1500000 AND deadline < now() + interval '1 minute'),
		count(deadline) FROM kappactl.segment`).Scan(&first, &dated); err != nil {
		t.Fatal(err)
	}
	if first != 2 || dated != 3 {
		t.Errorf("%d segments are due, %d have a deadline, want 2 and 3", first, dated)
	}
	events, err := w.store.History(t.Context(), "counts", nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, e := range events {
		if e.Kind == "retention" && strings.Contains(e.Message, "events/0") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the alarm is said %d times in the history", said)
	}
	stop := w.worker()
	defer stop()
	w.await("no alarm once everything is read", func() bool { return w.version(1).Phase == job.Live && len(w.version(1).Warnings) == 0 })
}
