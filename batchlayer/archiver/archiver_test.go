package archiver_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/batchlayer/archiver"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

func TestTheArchiveHoldsWhatTheLogHolds(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		w := newWorld(t, brokers, 2, nil)
		for i := range 20 {
			values := []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
			if i%3 == 0 {
				kafkatest.Aborted(t, brokers, w.topic, 0, values...)
			} else {
				kafkatest.Committed(t, brokers, w.topic, 0, values...)
			}
		}
		kafkatest.ProduceRecords(t, brokers, []*kgo.Record{
			{Topic: w.topic, Partition: 1, Key: []byte{}, Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: nil}}},
			{Topic: w.topic, Partition: 1, Value: []byte{}},
		}, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		// The broker writes the marker of a transaction after it has answered its end: 20 of two records and a marker each.
		kafkatest.AwaitStable(t, brokers, w.topic, 0, 60)
		w.start(archiver.Config{})
		w.equal(w.partition(0), 0, 60)
		w.equal(w.partition(1), 0, 2)
		kafkatest.Produce(t, brokers, w.topic, 1, "later")
		w.equal(w.partition(1), 0, 3)
	})
}

// A file ends at its size, and what is in memory is bounded: the parts of a file are written as row groups.
func TestFilesRollBySize(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, nil)
	w.want(time.Hour, 200_000)
	var values []string
	for i := range 3000 {
		values = append(values, fmt.Sprint(i, strings.Repeat("x", 500)))
	}
	kafkatest.Produce(t, brokers, w.topic, 0, values...)
	w.start(archiver.Config{Memory: 100_000})
	p := w.partition(0)
	files := w.archived(p, 1)
	if files[0].To == 3000 {
		t.Error("one file for all")
	}
	w.want(time.Second, 200_000) // applied in place
	w.equal(p, 0, 3000)
}

// What an agent had read and not published is read again by the one that takes over.
func TestAnotherAgentGoesOnWhereTheLastFileEnds(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, nil)
	kafkatest.Produce(t, brokers, w.topic, 0, "a", "b")
	p := w.partition(0)
	first := w.start(archiver.Config{})
	w.archived(p, 2)
	w.want(time.Hour, 64<<20)
	kafkatest.Produce(t, brokers, w.topic, 0, "c", "d")
	first.stop()
	w.want(time.Second, 64<<20)
	w.start(archiver.Config{})
	w.equal(p, 0, 4)
}

func TestAnArchiveThatIsTakenOutStopsAndKeepsItsFiles(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, nil)
	kafkatest.Produce(t, brokers, w.topic, 0, "a", "b")
	p := w.partition(0)
	w.start(archiver.Config{})
	w.archived(p, 2)
	w.sql(`UPDATE kappactl.version SET spec = spec - 'archive'`)
	kafkatest.Until(t, "the partition is given up", func() bool {
		var held int
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM kappactl.archive_position WHERE owner IS NOT NULL`).Scan(&held); err != nil {
			t.Fatal(err)
		}
		return held == 0
	})
	if files := w.archived(p, 2); len(w.records(files)) != 2 {
		t.Error("its files are gone")
	}
}

// fault waits for a fault of a partition and returns its range.
func (w *world) fault(p job.Partition, kind job.FaultKind) job.Range {
	w.t.Helper()
	var r job.Range
	kafkatest.UntilEvery(w.t, 50*time.Millisecond, "fault "+string(kind), func() bool {
		err := w.pool.QueryRow(w.t.Context(), `SELECT coalesce(max(fault_from), -1), coalesce(max(fault_to), -1) FROM kappactl.archive_position
			WHERE topic_id = $1::uuid AND partition = $2 AND fault = $3`, p.TopicID.String(), p.ID, string(kind)).Scan(&r.From, &r.To)
		if err != nil {
			w.t.Fatal(err)
		}
		return r.From >= 0
	})
	return r
}

func TestRetentionThatOvertakesTheArchiverIsAFault(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		w := newWorld(t, brokers, 1, nil)
		kafkatest.Produce(t, brokers, w.topic, 0, "a", "b")
		p := w.partition(0)
		first := w.start(archiver.Config{})
		w.archived(p, 2)
		first.stop()
		kafkatest.Produce(t, brokers, w.topic, 0, "c", "d", "e")
		kafkatest.DeleteRecords(t, brokers, w.topic, 0, 4)
		w.start(archiver.Config{})
		r := w.fault(p, job.FaultGap)
		if r != (job.Range{From: 2, To: 4}) {
			t.Errorf("fault %s", r)
		}
		if ok, err := w.accept(job.Range{From: 2, To: 5}); ok || err != nil {
			t.Errorf("another range was accepted: %v", err)
		}
		if ok, err := w.accept(r); !ok || err != nil {
			t.Fatal(ok, err)
		}
		files := w.archived(p, 5)
		if len(w.records(files)) != 3 || !files[1].Gap() {
			t.Errorf("files %+v", files)
		}
		w.sound(0)
	})
}

// The new topic has an archive of its own; the old one keeps its files.
func TestATopicMadeAgainGetsAnArchiveOfItsOwn(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		w := newWorld(t, brokers, 1, nil)
		kafkatest.Produce(t, brokers, w.topic, 0, "a", "b")
		old := w.partition(0)
		w.start(archiver.Config{})
		w.archived(old, 2)
		kafkatest.DeleteTopic(t, brokers, w.topic)
		kafkatest.Topic(t, brokers, w.topic, 1, nil)
		kafkatest.Produce(t, brokers, w.topic, 0, "new")
		w.equal(w.partition(0), 0, 1)
		if files := w.archived(old, 2); len(w.records(files)) != 2 {
			t.Error("the old topic's files are gone")
		}
	})
}

// A folder below a mount that is gone is empty: nothing is written to it.
func TestALocationWithoutItsMarkerIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 1, nil)
	kafkatest.Produce(t, brokers, w.topic, 0, "a")
	p := w.partition(0)
	w.start(archiver.Config{})
	w.archived(p, 1)
	mounted := w.dir + "-mounted"
	if err := os.Rename(w.dir, mounted); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.dir, 0o750); err != nil {
		t.Fatal(err)
	}
	kafkatest.Produce(t, brokers, w.topic, 0, "b")
	kafkatest.Until(t, "the error is noted", func() bool {
		var text string
		if err := w.pool.QueryRow(t.Context(), `SELECT error FROM kappactl.archive_position`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(text, "has no marker")
	})
	if found, err := filepath.Glob(w.dir + "/*"); err != nil || len(found) > 0 {
		t.Errorf("written below the mount: %v, %v", found, err)
	}
	if err := os.Remove(w.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(mounted, w.dir); err != nil {
		t.Fatal(err)
	}
	w.equal(p, 0, 2)
}

// sound verifies the archive of a partition.
func (w *world) sound(partition int32) archive.Verified {
	w.t.Helper()
	statuses, err := w.store.Statuses(w.t.Context(), w.pool, w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	var out archive.Verified
	for _, s := range statuses {
		if s.Partition != partition {
			continue
		}
		out, err = w.store.Verify(w.t.Context(), w.pool, w.at, s, w.t.TempDir(), func(f archive.Finding) { w.t.Errorf("%+v", f) })
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return out
}

// The log is cut off below what is archived: nothing is published behind it before a person has acted, and the archive goes on when
// the log has come to its end again.
func TestALogThatWasCutOffIsAFault(t *testing.T) {
	t.Parallel()
	broker := kafkatest.StartReal(t)
	w := newWorld(t, broker.Brokers, 1, nil)
	for _, v := range []string{"a", "b", "c"} { // a batch each
		kafkatest.Produce(t, broker.Brokers, w.topic, 0, v)
	}
	p := w.partition(0)
	first := w.start(archiver.Config{})
	w.archived(p, 3)
	first.stop()
	broker.Kill(t)
	broker.CutLog(t, w.topic, 0)
	broker.Start(t)
	end, _ := kafkatest.Ends(t, broker.Brokers, w.topic, 0)
	if end >= 3 {
		t.Fatalf("the log was not cut: it ends at %d", end)
	}
	w.start(archiver.Config{})
	if r := w.fault(p, job.FaultGap); r != (job.Range{From: end, To: 3}) {
		t.Errorf("fault %s, the log ends at %d", r, end)
	}
	if ok, err := w.accept(job.Range{From: end, To: 3}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	kafkatest.Produce(t, broker.Brokers, w.topic, 0, "d", "e", "f", "g", "h")
	if got := w.records(w.archived(p, end+5)); string(got[len(got)-1].Value) != "h" || got[3].Offset != 3 {
		t.Errorf("%d records", len(got))
	}
	w.sound(0)
}

// An archiver that falls behind is late before retention deletes what it has not archived.
func TestAnArchiverThatFallsBehindIsLate(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 2, map[string]string{"retention.ms": "3600000"})
	w.want(time.Hour, 64<<20) // two rolls are longer than retention
	kafkatest.ProduceRecords(t, brokers, []*kgo.Record{{Topic: w.topic, Partition: 1, Value: []byte("v"), Timestamp: time.Now()}}, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	w.start(archiver.Config{})
	var late []archive.Status
	kafkatest.Until(t, "the partition is late", func() bool {
		late = w.late()
		return len(late) > 0
	})
	if len(late) != 1 || late[0].Partition != 1 || time.Until(*late[0].Deadline) > time.Hour || time.Until(*late[0].Deadline) < 55*time.Minute {
		t.Errorf("late: %+v", late)
	}
	statuses, err := w.store.Statuses(t.Context(), w.pool, w.topic)
	if err != nil || statuses[0].State == archive.StateLate || statuses[1].State != archive.StateLate || *statuses[1].Behind != 1 {
		t.Errorf("%+v, %v", statuses, err)
	}
}

// A topic that is bounded by size alone deletes by how fast it grows: the log that will be full within two rolls is late, the one
// that has room for years is not.
func TestAnArchiverThatFallsBehindALogBoundedBySizeIsLate(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers, 2, map[string]string{"retention.ms": "-1", "retention.bytes": "200000"})
	w.want(time.Hour, 64<<20)
	records := []*kgo.Record{{Topic: w.topic, Partition: 0, Value: []byte("v"), Timestamp: time.Now()}}
	for range 100 {
		value := make([]byte, 1000)
		_, _ = rand.Read(value) // which does not compress; it has no error
		records = append(records, &kgo.Record{Topic: w.topic, Partition: 1, Value: value, Timestamp: time.Now()})
	}
	kafkatest.ProduceRecords(t, brokers, records, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	w.start(archiver.Config{})
	var late []archive.Status
	kafkatest.Until(t, "the partition is late", func() bool {
		late = w.late()
		return len(late) > 0
	})
	if left := time.Until(*late[0].Deadline); len(late) != 1 || late[0].Partition != 1 || left > time.Hour || left < 45*time.Minute {
		t.Errorf("late: %+v", late)
	}
}
