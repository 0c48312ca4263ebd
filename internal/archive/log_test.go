package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/archivetest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// timed is a history whose records have times in no order; the archive and the log hold all of them.
func timed(t *testing.T) (*history, *kafka.Admin, []time.Time) {
	t.Helper()
	pool, _ := pgtest.New(t)
	h := &history{pool: pool, brokers: kafkatest.Real(t), dir: t.TempDir()}
	topic := kafkatest.Name("t")
	kafkatest.Topic(t, h.brokers, topic, 1, map[string]string{"retention.ms": "-1"})
	var asked []time.Time
	for i := range int64(40) {
		ms := 1_700_000_000_000 + i*i*37%1000*1000
		kafkatest.ProduceAt(t, h.brokers, topic, 0, ms, nil, []byte("x"))
		asked = append(asked, time.UnixMilli(ms), time.UnixMilli(ms+1))
	}
	kafkatest.AwaitStable(t, h.brokers, topic, 0, 40)
	h.Partition = archivetest.Want(t, pool, h.brokers, topic, "file://"+h.dir)[0]
	h.files = archivetest.Fill(t, pool, h.brokers, h.Partition, 13, 14, 30)
	admin, err := kafka.NewAdmin(kafka.Config{Brokers: h.brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	return h, admin, asked
}

func offsetAt(t *testing.T, c archive.Cluster, topic string, at time.Time) int64 {
	t.Helper()
	facts, err := c.OffsetsAt(t.Context(), []string{topic}, at)
	if err != nil || len(facts) != 1 || facts[0].Err != nil {
		t.Fatalf("offset at %s: %+v, %v", at, facts, err)
	}
	return facts[0].Start
}

func TestTheFirstOffsetSinceATimeIsTheBrokersAnswer(t *testing.T) {
	t.Parallel()
	h, admin, asked := timed(t)
	log := archive.NewLog(admin, archive.NewShelf(h.pool, new(archive.Locations), t.TempDir(), archive.DefaultShelf), archive.ArchiveFirst, false)
	want := map[time.Time]int64{}
	for _, at := range asked {
		want[at] = offsetAt(t, admin, h.Topic, at)
	}
	for _, gone := range []int64{0, 20} {
		kafkatest.DeleteRecords(t, h.brokers, h.Topic, 0, gone)
		for _, at := range asked {
			if got := offsetAt(t, log, h.Topic, at); got != want[at] {
				t.Errorf("without %d offsets, at %s: offset %d, the brokers said %d", gone, at, got, want[at])
			}
		}
	}
	times, err := log.Times(t.Context(), map[job.Partition]int64{h.Partition: 5})
	if diff := cmp.Diff(map[job.Partition]time.Time{h.Partition: time.UnixMilli(1_700_000_000_000 + 25*37%1000*1000)}, times); diff != "" || err != nil {
		t.Errorf("time of an offset that the log lost: %v %s", err, diff)
	}
}

func TestALogBeginsWhereItsArchiveBeginsThatReachesIt(t *testing.T) {
	t.Parallel()
	h, admin, _ := timed(t)
	shelf := archive.NewShelf(h.pool, new(archive.Locations), t.TempDir(), archive.DefaultShelf)
	start := func(p archive.Policy) (start, end int64) {
		t.Helper()
		topics, err := archive.NewLog(admin, shelf, p, false).Topics(t.Context(), []string{h.Topic})
		if err != nil || len(topics) != 1 || topics[0].ID != h.TopicID {
			t.Fatalf("%+v, %v", topics, err)
		}
		return topics[0].Partitions[0].Start, topics[0].Partitions[0].LastStable
	}
	kafkatest.DeleteRecords(t, h.brokers, h.Topic, 0, 25)
	for p, want := range map[archive.Policy]job.Range{
		archive.LogOnly: {From: 25, To: 40}, archive.ArchiveFirst: {From: 0, To: 40}, archive.ArchiveOnly: {From: 0, To: 30},
	} {
		if from, to := start(p); from != want.From || to != want.To {
			t.Errorf("policy %d: [%d,%d), want %s", p, from, to, want)
		}
	}
	if _, err := h.pool.Exec(t.Context(), `UPDATE kappactl.archive_file SET name = '' WHERE from_offset = 13`); err != nil {
		t.Fatal(err)
	}
	if from, _ := start(archive.ArchiveFirst); from != 14 {
		t.Errorf("behind a gap of the archive: %d", from)
	}
	kafkatest.DeleteRecords(t, h.brokers, h.Topic, 0, 35)
	if from, _ := start(archive.ArchiveFirst); from != 35 {
		t.Errorf("with a hole between archive and log: %d", from)
	}
}

// A plan may be made where the folder is not seen; a replay is not begun by an estimate.
func TestTimesAreEstimatedOnlyWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	h, admin, asked := timed(t)
	if err := os.Remove(filepath.Join(h.dir, h.files[0])); err != nil {
		t.Fatal(err)
	}
	shelf := archive.NewShelf(h.pool, new(archive.Locations), t.TempDir(), archive.DefaultShelf)
	if got := offsetAt(t, archive.NewLog(admin, shelf, archive.ArchiveFirst, true), h.Topic, asked[2]); got != 0 {
		t.Errorf("estimated as %d", got)
	}
	_, err := archive.NewLog(admin, shelf, archive.ArchiveFirst, false).OffsetsAt(t.Context(), []string{h.Topic}, asked[2])
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("not estimated: %v", err)
	}
}
