package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/archivetest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// history is a partition of 100 records: files hold [0,60), the log holds [50,100).
type history struct {
	job.Partition
	pool    *pg.Pool
	brokers []string
	dir     string
	files   []string // of [0,40) and [40,60)
	now     time.Time
}

func newHistory(t *testing.T, brokers []string) *history {
	t.Helper()
	pool, _ := pgtest.New(t)
	h := &history{pool: pool, brokers: brokers, dir: t.TempDir(), now: time.Now()}
	topic := kafkatest.Name("t")
	kafkatest.Topic(t, brokers, topic, 1, nil)
	kafkatest.Produce(t, brokers, topic, 0, values(0, 100)...)
	kafkatest.AwaitStable(t, brokers, topic, 0, 100)
	h.Partition = archivetest.Want(t, pool, brokers, topic, "file://"+h.dir)[0]
	h.files = archivetest.Fill(t, pool, brokers, h.Partition, 40, 60)
	kafkatest.DeleteRecords(t, brokers, topic, 0, 50)
	return h
}

func values(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

func (h *history) reader(t *testing.T, p archive.Policy, shelf *archive.Shelf, brokers ...string) *archive.Reader {
	t.Helper()
	cl, err := kafka.NewClient(kafka.Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	if shelf == nil {
		shelf = archive.NewShelf(h.pool, new(archive.Locations), t.TempDir(), archive.DefaultShelf)
	}
	r := archive.NewReader(kafka.NewFetcher(cl, kafka.FetchConfig{}), shelf, p, func() time.Time { return h.now })
	t.Cleanup(func() { r.Close(); cl.Close() })
	return r
}

// read reads from an offset until it has reached another one or met a final error.
func (h *history) read(t *testing.T, r *archive.Reader, from, to int64) (got []string, epoch int32, err error) {
	t.Helper()
	at := kafka.Cursor{Partition: h.Partition, Next: from, LeaderEpoch: 0, Known: 100}
	kafkatest.Until(t, fmt.Sprintf("the reader is at %d", to), func() bool {
		fetched, failed := r.Fetch(t.Context(), []kafka.Cursor{at})
		if failed != nil {
			t.Fatal(failed)
		}
		for _, f := range fetched {
			if f.Err != nil {
				if err = f.Err; archive.Final(err) {
					return true
				}
				t.Logf("passes: %v", f.Err)
				continue
			}
			for _, rec := range f.Records {
				if rec.Topic != h.Topic || rec.Partition != h.ID {
					t.Fatalf("record of %s/%d", rec.Topic, rec.Partition)
				}
				got = append(got, string(rec.Value))
			}
			at.Next, at.LeaderEpoch = f.Next, f.LeaderEpoch
		}
		return at.Next >= to
	})
	if at.Next >= to {
		err = nil
	}
	return got, at.LeaderEpoch, err
}

func TestAReaderGoesOnInTheLogWhereTheArchiveEnds(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		h := newHistory(t, brokers)
		for _, p := range []archive.Policy{archive.ArchiveFirst, archive.LogFirst} {
			r := h.reader(t, p, nil, brokers...)
			for _, from := range []int{0, 45, 39, 55, 60} { // forwards and backwards
				got, _, err := h.read(t, r, int64(from), 100)
				if diff := cmp.Diff(values(from, 100), got); diff != "" || err != nil {
					t.Errorf("policy %d from %d: %v %s", p, from, err, diff)
				}
			}
		}
	})
}

func TestOffsetsThatNeitherHoldsAreAGap(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		h := newHistory(t, brokers)
		kafkatest.DeleteRecords(t, brokers, h.Topic, 0, 80)
		for p, want := range map[archive.Policy]job.Range{
			archive.LogOnly: {From: 0, To: 80}, archive.LogFirst: {From: 60, To: 80}, archive.ArchiveFirst: {From: 60, To: 80},
		} {
			_, _, err := h.read(t, h.reader(t, p, nil, brokers...), 0, 100)
			var gap *kafka.GapError
			if !errors.As(err, &gap) || gap.Wanted != want.From || gap.Start != want.To {
				t.Errorf("policy %d: %v", p, err)
			}
		}
	})
}

func TestTheBrokersAreNotAskedWhereOnlyTheArchiveIsRead(t *testing.T) {
	t.Parallel()
	h := newHistory(t, kafkatest.Fake(t))
	r := h.reader(t, archive.ArchiveOnly, nil, "127.0.0.1:1")
	got, _, err := h.read(t, r, 0, 60)
	if diff := cmp.Diff(values(0, 60), got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	at := []kafka.Cursor{{Partition: h.Partition, Next: 60}}
	if fetched, err := r.Fetch(t.Context(), at); len(fetched) > 0 || err != nil {
		t.Errorf("at the end: %+v, %v", fetched, err)
	}
	archivetest.Fill(t, h.pool, h.brokers, h.Partition, 70)
	if got, _, err := h.read(t, r, 60, 70); len(got) != 10 || err != nil {
		t.Errorf("behind what was the end: %v, %v", got, err)
	}
}

// An answer under an epoch that is older than the cursor's, or than that under which the log reached the offset, would be
// taken for a log that was cut off.
func TestAnswersOfFilesNeverHaveAnOlderLeaderEpoch(t *testing.T) {
	t.Parallel()
	h := newHistory(t, kafkatest.Fake(t))
	if _, err := h.pool.Exec(t.Context(), `UPDATE kappactl.archive_file SET leader_epoch = 4`); err != nil {
		t.Fatal(err)
	}
	r := h.reader(t, archive.ArchiveOnly, nil, "127.0.0.1:1")
	for cursor, want := range map[int32]int32{-1: -1, 3: 4, 7: 7} {
		fetched, err := r.Fetch(t.Context(), []kafka.Cursor{{Partition: h.Partition, Next: 0, LeaderEpoch: cursor}})
		if err != nil || len(fetched) != 1 || fetched[0].LeaderEpoch != want {
			t.Errorf("cursor of epoch %d: %+v, %v", cursor, fetched, err)
		}
	}
}

func TestAReadThatMeetsADamagedFileStopsBeforeItsFirstRecord(t *testing.T) {
	t.Parallel()
	h := newHistory(t, kafkatest.Fake(t))
	path := filepath.Join(h.dir, h.files[1])
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(text)
	flipped[len(text)/2] ^= 1
	for name, planted := range map[string][]byte{"0 bytes": {}, "4 bytes": text[:4], "truncated": text[:len(text)-1], "a flipped bit": flipped} {
		if err := os.WriteFile(path, planted, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := h.read(t, h.reader(t, archive.ArchiveFirst, nil, h.brokers...), 0, 100)
		var damaged *archive.DamagedError
		if !errors.As(err, &damaged) || damaged.Name != h.files[1] || len(got) != 40 {
			t.Errorf("%s: %v after %d records", name, err, len(got))
		}
	}
}

func TestAFileThatIsNotThereIsAskedForAMinute(t *testing.T) {
	t.Parallel()
	h := newHistory(t, kafkatest.Fake(t))
	path := filepath.Join(h.dir, h.files[0])
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	r := h.reader(t, archive.ArchiveFirst, nil, h.brokers...)
	at := []kafka.Cursor{{Partition: h.Partition}}
	for range 3 {
		fetched, err := r.Fetch(t.Context(), at)
		if err != nil || len(fetched) != 1 || fetched[0].Err == nil || archive.Final(fetched[0].Err) {
			t.Fatalf("%+v, %v", fetched, err)
		}
		h.now = h.now.Add(20 * time.Second)
	}
	fetched, err := r.Fetch(t.Context(), at)
	var damaged *archive.DamagedError
	if err != nil || len(fetched) != 1 || !errors.As(fetched[0].Err, &damaged) || damaged.Name != h.files[0] {
		t.Fatalf("after a minute: %+v, %v", fetched, err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(time.Second)
	if got, _, err := h.read(t, r, 0, 60); len(got) != 60 || err != nil {
		t.Errorf("when it is there again: %d records, %v", len(got), err)
	}
}

// Small files are rewritten into larger ones, and the old ones deleted, while they are read.
func TestAFileThatWasMergedIsReadFromItsSuccessor(t *testing.T) {
	t.Parallel()
	h := newHistory(t, kafkatest.Fake(t))
	kafkatest.Produce(t, h.brokers, h.Topic, 0, values(100, 120)...)
	kafkatest.AwaitStable(t, h.brokers, h.Topic, 0, 120)
	small := archivetest.Fill(t, h.pool, h.brokers, h.Partition, 110, 120)
	for _, name := range small {
		if err := os.Remove(filepath.Join(h.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := h.reader(t, archive.ArchiveFirst, nil, h.brokers...)
	at := []kafka.Cursor{{Partition: h.Partition, Next: 65}}
	if fetched, err := r.Fetch(t.Context(), at); err != nil || len(fetched) != 1 || fetched[0].Err == nil {
		t.Fatalf("%+v, %v", fetched, err)
	}
	for _, sql := range []string{`DELETE FROM kappactl.archive_file WHERE from_offset >= 60`, `UPDATE kappactl.archive_position SET next = 60`} {
		if _, err := h.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	archivetest.Fill(t, h.pool, h.brokers, h.Partition, 120)
	h.now = h.now.Add(time.Second)
	if got, _, err := h.read(t, r, 65, 120); len(got) != 55 || err != nil {
		t.Errorf("%d records, %v", len(got), err)
	}
}

func TestALocationWithoutItsMarkerIsNotRead(t *testing.T) {
	t.Parallel()
	h := newHistory(t, kafkatest.Fake(t))
	markers, err := filepath.Glob(filepath.Join(h.dir, "*", "*", "kappactl-archive.json"))
	if err != nil || len(markers) != 1 {
		t.Fatalf("%v, %v", markers, err)
	}
	if err := os.Remove(markers[0]); err != nil {
		t.Fatal(err)
	}
	r := h.reader(t, archive.ArchiveFirst, nil, h.brokers...)
	at := []kafka.Cursor{{Partition: h.Partition}}
	fetched, err := r.Fetch(t.Context(), at)
	var marker *archive.MarkerError
	if err != nil || len(fetched) != 1 || !errors.As(fetched[0].Err, &marker) || archive.Final(fetched[0].Err) {
		t.Fatalf("%+v, %v", fetched, err)
	}
	h.now = h.now.Add(time.Minute)
	fetched, err = r.Fetch(t.Context(), at)
	if err != nil || len(fetched) != 1 || !archive.Final(fetched[0].Err) || !strings.Contains(fetched[0].Err.Error(), h.files[0]) {
		t.Errorf("after a minute: %+v, %v", fetched, err)
	}
}

func TestAShelfHoldsNoMoreThanItsBound(t *testing.T) {
	t.Parallel()
	h := newHistory(t, kafkatest.Fake(t))
	folder := t.TempDir()
	shelf := archive.NewShelf(h.pool, new(archive.Locations), folder, 1)
	a, b := h.reader(t, archive.ArchiveOnly, shelf, "127.0.0.1:1"), h.reader(t, archive.ArchiveOnly, shelf, "127.0.0.1:1")
	if _, err := a.Fetch(t.Context(), []kafka.Cursor{{Partition: h.Partition, Next: 0}}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		fetched, err := b.Fetch(t.Context(), []kafka.Cursor{{Partition: h.Partition, Next: 40}})
		if err != nil {
			t.Error(err)
		}
		answered <- len(fetched)
	}()
	kafkatest.Until(t, "the second reader waits", func() bool { return shelf.Waiting() == 1 })
	a.Rest()
	if n := <-answered; n != 1 {
		t.Errorf("%d answers", n)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("files with a name: %v, %v", left, err)
	}
}
