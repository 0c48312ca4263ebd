package reprocess_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
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
	stop := w.run(1, nil)
	w.stage("aaa")
	w.await("the alarm", func() bool {
		v := w.version(1)
		return len(v.Warnings) > 0 && v.RetentionDeadline != nil && v.Partitions[0].RetentionDeadline != nil
	})
	has(t, w.version(1).Warnings[0], "retention deletes unread records of events/0 now")
	if codes := w.version(1).WarningCodes; len(codes) != 1 || codes[0] != reason.CodeRetentionUnknown {
		t.Errorf("the codes of the warnings are %v", codes)
	}
	var first, dated int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE from_offset < 1500000 AND deadline < now() + interval '1 minute'),
		count(deadline) FROM kappactl.segment`).Scan(&first, &dated); err != nil {
		t.Fatal(err)
	}
	if first != 2 || dated != 3 {
		t.Errorf("%d segments are due, %d have a deadline, want 2 and 3", first, dated)
	}
	said := func() (texts []string) {
		events, err := w.store.History(t.Context(), "counts", nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Kind == "retention" {
				texts = append(texts, e.Message)
			}
		}
		return texts
	}
	once := func(after string) {
		t.Helper()
		if got := said(); len(got) != 1 || !strings.Contains(got[0], "events/0") {
			t.Errorf("after %s the history says: %q", after, got)
		}
	}
	once("the alarm")
	// Another controller that cannot ask the brokers, and one that can: what is not known ends no alarm, and it is not said again.
	for _, broken := range []error{errors.New("no answer"), nil} {
		stop()
		w.brokers.set(func(b *brokers) { b.err = broken })
		w.sql(`UPDATE kappactl.version SET warnings = '[{"code": "retention_over"}]'`)
		w.sql(`DELETE FROM kappactl.observation`)
		stop = w.run(1, nil)
		w.await("samples of the next controller", func() bool {
			v := w.version(1)
			return len(v.Partitions) == 1 && (v.Partitions[0].Verdict == job.Unknown) == (broken != nil) && (len(v.Warnings) == 0) == (broken != nil)
		})
		once(fmt.Sprintf("a takeover with %v", broken))
	}
	stopWorker := w.worker()
	defer stopWorker()
	w.await("no alarm once everything is read", func() bool { return w.version(1).Phase == job.Live && len(w.version(1).Warnings) == 0 })
	w.await("its end in the history", func() bool { return len(said()) == 2 })
}
