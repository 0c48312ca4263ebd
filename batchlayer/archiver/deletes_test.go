package archiver_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/batchlayer/archiver"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// An archiver of a compacted topic that was behind for half of the time for which tombstones are kept is late; behind it, it stops, and
// the archive says from then on that deletes may be missing.
func TestAnArchiverOfACompactedTopicThatMissesDeletesStops(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "3600000"})
	kafkatest.Produce(t, brokers, w.topic, 0, "a", "b")
	p := w.partition(0)
	first := w.start(archiver.Config{})
	w.archived(p, 2)
	if lost := w.lostDeletes(); len(lost) != 0 {
		t.Fatalf("%+v", lost)
	}
	first.stop()

	kafkatest.Produce(t, brokers, w.topic, 0, "c")
	w.want(time.Hour, 64<<20) // the record waits
	w.sql(`UPDATE kappactl.archive_position SET caught_up_at = clock_timestamp() - interval '31 minutes'`)
	second := w.start(archiver.Config{})
	defer w.start(archiver.Config{}).stop() // which tells nothing again
	kafkatest.Until(t, "the partition is late", func() bool {
		late := w.late()
		return len(late) == 1 && time.Until(*late[0].Deadline) < 30*time.Minute
	})
	kafkatest.Until(t, "the job is told that it is late", func() bool { return len(w.told()) == 1 })
	w.sql(`UPDATE kappactl.archive_position SET caught_up_at = clock_timestamp() - interval '61 minutes'`)
	if r := w.fault(p, archive.FaultDeletes); r != (job.Range{From: 2, To: 2}) {
		t.Errorf("fault %s", r)
	}
	kafkatest.Until(t, "the job is told that it has stopped", func() bool { return len(w.told()) == 2 })
	second.stop()
	if told := w.told(); !slices.Equal(told, []string{"archive_late", "archive_stopped"}) {
		t.Errorf("told %q", told)
	}

	if resumed, err := w.store.Resume(t.Context(), w.pool, w.topic); err != nil || len(resumed) != 1 {
		t.Fatal(resumed, err)
	}
	w.want(time.Second, 64<<20)
	w.start(archiver.Config{})
	w.equal(p, 0, 3)
	lost := w.lostDeletes()
	if len(lost) != 1 || lost[0].Range != (job.Range{From: 0, To: 2}) {
		t.Errorf("lost deletes %+v", lost)
	}
	w.sql(`UPDATE kappactl.archive_position SET start_offset = 2`) // as prune does
	if lost := w.lostDeletes(); len(lost) != 0 {
		t.Errorf("behind prune: %+v", lost)
	}
}

// late are the partitions of the topic that are late.
func (w *world) late() (out []archive.Status) {
	w.t.Helper()
	all, err := w.store.Statuses(w.t.Context(), w.pool, w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range all {
		if s.State == archive.StateLate {
			out = append(out, s)
		}
	}
	return out
}

// told are the kinds of events in the history of the job.
func (w *world) told() []string {
	w.t.Helper()
	kinds, err := pg.Collect(w.t.Context(), w.pool, pgx.RowTo[string], `SELECT kind FROM kappactl.event WHERE job = 'o' ORDER BY id`)
	if err != nil {
		w.t.Fatal(err)
	}
	return kinds
}

func (w *world) lostDeletes() []archive.LostDeletes {
	w.t.Helper()
	lost, err := w.store.LostDeletes(w.t.Context(), w.pool, []string{w.topic})
	if err != nil {
		w.t.Fatal(err)
	}
	return lost
}

// An archiver that is read from all the time is never at the end of the log, and keeps up all the same.
func TestAnArchiverThatKeepsUpWithABusyLogIsNotBehind(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "3600000"})
	kafkatest.Produce(t, brokers, w.topic, 0, "a")
	p := w.partition(0)
	w.start(archiver.Config{Look: time.Hour}) // nothing but files tells how far it is
	w.archived(p, 1)
	w.sql(`UPDATE kappactl.archive_position SET caught_up_at = clock_timestamp() - interval '61 minutes'`)
	kafkatest.Produce(t, brokers, w.topic, 0, "b")
	w.archived(p, 2)
	var ago time.Duration
	if err := w.pool.QueryRow(t.Context(), `SELECT clock_timestamp() - caught_up_at FROM kappactl.archive_position`).Scan(&ago); err != nil || ago > time.Minute {
		t.Errorf("caught up %s ago, %v", ago, err)
	}
}
