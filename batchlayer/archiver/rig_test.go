package archiver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/batchlayer/archiver"
	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/s3test"
)

func TestMain(m *testing.M) {
	code := pgtest.Run(m)
	kafkatest.Stop()
	s3test.Stop()
	os.Exit(code)
}

// world is one topic that a job wants archived.
type world struct {
	t        *testing.T
	brokers  []string
	topic    string
	pool     *pg.Pool
	admin    *kafka.Admin
	dir      string
	at       *archive.Locations
	location string
	store    archive.Store
}

func newWorld(t *testing.T, brokers []string, partitions int32, configs map[string]string) *world {
	t.Helper()
	w := &world{t: t, brokers: brokers, topic: kafkatest.Name("archived"), dir: t.TempDir()}
	w.at, w.location = new(archive.Locations), "file://"+w.dir
	w.pool, _ = pgtest.New(t)
	kafkatest.Topic(t, brokers, w.topic, partitions, configs)
	admin, err := kafka.NewAdmin(kafka.Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	w.admin = admin
	w.sql(`INSERT INTO kappactl.job (name, view_schema, view_name) VALUES ('o', 'public', 'o')`)
	w.sql(`INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase) VALUES ('o', 1, 'h', '{}', '{}', 1, 'sql', 'live')`)
	w.want(time.Second, 64<<20)
	return w
}

// want is the archive in the job file that is in force.
func (w *world) want(every time.Duration, size int64) {
	w.t.Helper()
	w.sql(fmt.Sprintf(`UPDATE kappactl.version SET spec = '{"source": {"topics": [%q]}, "archive": {"location": %q, "roll": {"every": %d, "size": %d}}}'`,
		w.topic, w.location, every.Nanoseconds(), size))
}

func (w *world) sql(text string) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), text); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
}

// agents are running archivers.
type agents struct {
	stop func()
}

// start runs an agent with an archiver. It ends with the test or by stop.
func (w *world) start(c archiver.Config) *agents {
	w.t.Helper()
	c.Temp = w.t.TempDir()
	if c.Look == 0 {
		c.Look = 200 * time.Millisecond
	}
	log := slog.New(slog.NewTextHandler(w.t.Output(), nil))
	ar := archiver.New(archiver.Deps{Pool: w.pool, Kafka: kafka.Config{Brokers: w.brokers}, Brokers: w.admin, Locations: w.at, Log: log}, c)
	ag := agent.New(agent.Deps{Pool: w.pool, Work: []agent.Work{ar.Work()}, Log: log}, agent.Config{
		ID: kafkatest.Name("agent"), Poll: 50 * time.Millisecond, Lease: 2 * time.Second,
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := ar.Host(ctx); err != nil {
			w.t.Error(err)
		}
	})
	group.Go(func() {
		if err := ag.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	stop := sync.OnceFunc(func() { cancel(); group.Wait() })
	w.t.Cleanup(stop)
	return &agents{stop: stop}
}

func (w *world) partition(id int32) job.Partition {
	w.t.Helper()
	facts, err := w.admin.Offsets(w.t.Context(), []string{w.topic})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range facts {
		if f.ID == id {
			return f.Partition
		}
	}
	w.t.Fatalf("no partition %d", id)
	return job.Partition{}
}

// archived waits until the archive of a partition reaches an offset and returns its files.
func (w *world) archived(p job.Partition, to int64) []archive.FileRow {
	w.t.Helper()
	var files []archive.FileRow
	kafkatest.UntilEvery(w.t, 50*time.Millisecond, fmt.Sprintf("%s is archived up to %d", p, to), func() bool {
		var err error
		if files, err = w.store.Files(w.t.Context(), w.pool, p.TopicID, p.ID, 0, 10_000); err != nil {
			w.t.Fatal(err)
		}
		return len(files) > 0 && files[len(files)-1].To >= to
	})
	for i, f := range files {
		if i > 0 && files[i-1].To != f.From {
			w.t.Errorf("%s: a file to %d is followed by one from %d", p, files[i-1].To, f.From)
		}
	}
	return files
}

// records reads the files and checks hash and footer.
func (w *world) records(files []archive.FileRow) []*kgo.Record {
	w.t.Helper()
	var out []*kgo.Record
	for _, f := range files {
		if f.Gap() {
			continue
		}
		l, err := w.at.Open(f.Location)
		if err != nil {
			w.t.Fatal(err)
		}
		var text bytes.Buffer
		if err := archive.Fetch(w.t.Context(), l, f, &text); err != nil {
			w.t.Fatal(err)
		}
		file, err := archive.NewFile(bytes.NewReader(text.Bytes()))
		if err != nil {
			w.t.Fatal(err)
		}
		if file.Footer.Range != f.Range || file.Footer.Partition != f.Partition || file.Footer.Records != f.Records {
			w.t.Errorf("footer %+v of row %+v", file.Footer, f)
		}
		for {
			records, err := file.Next(1000)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				w.t.Fatal(err)
			}
			out = append(out, records...)
		}
	}
	return out
}

// fromLog reads the committed records of a partition from the brokers.
func (w *world) fromLog(p job.Partition, from, to int64) []*kgo.Record {
	w.t.Helper()
	cl := kafkatest.Client(w.t, w.brokers)
	f := kafka.NewFetcher(cl, kafka.FetchConfig{})
	defer f.Close()
	var out []*kgo.Record
	for at := from; at < to; {
		got, err := f.Fetch(w.t.Context(), []kafka.Cursor{{Partition: p, Next: at, LeaderEpoch: -1}})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, g := range got {
			if g.Err != nil {
				w.t.Fatal(g.Err)
			}
			out, at = append(out, g.Records...), g.Next
		}
	}
	return slices.DeleteFunc(out, func(r *kgo.Record) bool { return r.Offset >= to })
}

// text renders records: equal for equal lists.
func text(records []*kgo.Record) string {
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "%d %d %q %q %v\n", r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, r.Headers)
	}
	return b.String()
}

// equal compares the archive of a partition with its log.
func (w *world) equal(p job.Partition, from, to int64) {
	w.t.Helper()
	got, want := w.records(w.archived(p, to)), w.fromLog(p, from, to)
	if text(got) != text(want) {
		w.t.Errorf("%s: %d records in the archive, %d in the log, or others", p, len(got), len(want))
	}
}

// accept lets partition 0 go on behind a gap; false: it has no such fault.
func (w *world) accept(gap job.Range) (ok bool, err error) {
	w.t.Helper()
	err = w.pool.ReadCommitted(w.t.Context(), func(tx *pg.Tx) error {
		var jobs []string
		if jobs, ok, err = w.store.AcceptGap(w.t.Context(), tx, w.topic, 0, gap); ok && !slices.Equal(jobs, []string{"o"}) {
			w.t.Errorf("the archive of the jobs %v", jobs)
		}
		return err
	})
	return ok, err
}
