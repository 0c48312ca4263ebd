package speedlayer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// TestABatchThatTakesTooLongIsMadeSmaller: the same batch would take too long for ever.
func TestABatchThatTakesTooLongIsMadeSmaller(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, sums)
	exec(t, r.pool, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.03); RETURN NEW; END'`, nil)
	exec(t, r.pool, `CREATE TRIGGER slow BEFORE INSERT ON public.sums__v1 FOR EACH ROW EXECUTE FUNCTION slow()`, nil)
	for p := range int32(2) {
		var values []string
		for i := range 20 {
			values = append(values, fmt.Sprintf(`{"k":"key-%d-%d","v":%d}`, p, i, i))
		}
		kafkatest.Produce(t, r.brokers, r.topic, p, values...)
	}
	r.startLive()
	r.agent("a", func(e *Engine) { e.config.Timeout = 500 * time.Millisecond })
	r.caughtUp()
	r.equal()
}

// TestASearchThatTakesTooLongMakesTheBatchSmaller: the same batch would be searched for ever.
func TestASearchThatTakesTooLongMakesTheBatchSmaller(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	e := r.engine("a")
	e.config.Lease, e.config.Timeout = time.Minute, time.Millisecond
	v, err := e.load(t.Context(), r.ref)
	if err != nil {
		t.Fatal(err)
	}
	l := &live{run: &run{Engine: e, version: v, log: r.log, quiet: newQuiet(r.log, e.Now)}, limit: noLimit}
	t.Cleanup(l.close)
	if err := l.openBatching(t.Context()); err != nil {
		t.Fatal(err)
	}
	const records = 20_000 // whose values PostgreSQL does not read within a millisecond
	o := &owned{partition: job.Partition{Topic: r.topic}, read: records}
	for i := range records {
		o.records = append(o.records, &kgo.Record{Topic: r.topic, Offset: int64(i), Value: fmt.Appendf(nil, `{"k":"key-%d","v":%d}`, i, i)})
	}
	l.owned = map[job.Partition]*owned{o.partition: o}
	err = l.settle(t.Context(), &dataError{errors.New("no such number")}, cutBatch(l.sorted(), l.limit))
	if !pg.TimedOut(err) || o.limit != records/2 || !o.alone() {
		t.Errorf("%v, and the next batch has %d records, want half of %d", err, o.limit, records)
	}
}

// TestFewSegmentsWriteAtOnce: a machine with many CPUs must not use up the connections by which leases are renewed.
func TestFewSegmentsWriteAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 200, 60)
	r.startReplay(10)
	var inside, most atomic.Int64
	second := make(chan struct{}, 1)
	r.agent("a", func(e *Engine) {
		e.config.Workers, e.workers, e.landings = 4, make(chan struct{}, 4), make(chan struct{}, 1)
		e.at = func(point string) {
			switch point {
			case faultpoint.SegmentStaged:
				if n := inside.Add(1); n > 1 {
					most.Store(n)
					second <- struct{}{}
				}
				select { // whether another one comes
				case <-second:
				case <-time.After(100 * time.Millisecond):
				}
			case faultpoint.SegmentBeforeCommit:
				inside.Add(-1)
			}
		}
	})
	r.build()
	if most.Load() > 0 {
		t.Errorf("%d segments wrote at once", most.Load())
	}
	r.caughtUp()
	r.equal()
}

// TestWhatALiveVersionHoldsIsBoundedOverItsPartitions: 200 partitions hold no more than one would.
func TestWhatALiveVersionHoldsIsBoundedOverItsPartitions(t *testing.T) {
	t.Parallel()
	e := New(Deps{}, Config{Memory: 1_000_000_000})
	memory := e.fetchMemory()
	for name, c := range map[string]struct {
		held    int // bytes of each of the first 100 partitions, of 200
		cursors int
	}{
		"nothing":    {0, 200},
		"a little":   {memory / 400, 200},
		"its memory": {memory/100 + 1, 0},
	} {
		l := &live{run: &run{Engine: e, version: &version{spec: &job.Spec{}}}, owned: map[job.Partition]*owned{}}
		for i := range int32(200) {
			p := job.Partition{Topic: "t", ID: i}
			l.owned[p] = &owned{partition: p}
			if i < 100 {
				l.owned[p].bytes = c.held
			}
		}
		if got := len(l.cursors()); got != c.cursors {
			t.Errorf("%s: %d cursors, want %d", name, got, c.cursors)
		}
	}
	e.follows.Store(20)
	if shared := e.fetchMemory(); 20*shared > 400_000_000 {
		t.Errorf("20 versions hold %d bytes each", shared)
	}
	for _, memory := range []int64{64 << 20, 1e9, 64e9} {
		for _, workers := range []int{1, 8, 64} {
			e := New(Deps{}, Config{Memory: memory, Workers: workers})
			for _, c := range []kafka.FetchConfig{e.replayFetches(), e.followFetches(0)} {
				if c.MaxUnpacked < 1<<20 || c.MaxUnpacked > 8<<20 || c.MaxBytes < 1<<20 || c.MaxBytes > 16<<20 || c.MaxAnswer > 32<<20 {
					t.Errorf("%d bytes, %d workers: %+v", memory, workers, c)
				}
			}
		}
	}
}

// TestLiveVersionsShareTheMemoryAlsoWhenOthersCome: the first ones took what was theirs when there were fewer.
func TestLiveVersionsShareTheMemoryAlsoWhenOthersCome(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	e := r.engine("a")
	e.config.Memory, e.config.Workers, e.config.Spill = 1_000_000_000, 1, 8<<30
	v, err := e.load(t.Context(), r.ref)
	if err != nil {
		t.Fatal(err)
	}
	var all []*live
	limits := func() (got []string) {
		for _, l := range all {
			l.bound()
			const limits = `SELECT current_setting('memory_limit') || ', ' || current_setting('max_temp_directory_size')`
			err := l.batching.session.Run(t.Context(), limits, nil, func(b arrow.RecordBatch) error {
				got = append(got, strings.Clone(b.Column(0).ValueStr(0))) // the engine owns the bytes
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return got
	}
	for range 4 {
		e.follows.Add(1)
		l := &live{run: &run{Engine: e, version: v, log: r.log, quiet: newQuiet(r.log, e.Now)}}
		t.Cleanup(l.close)
		if err := l.openBatching(t.Context()); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	if got := limits(); !slices.Equal(got, slices.Repeat([]string{"95.3 MiB, 1.0 GiB"}, 4)) { // 400 MB and 4 GiB among four
		t.Errorf("four versions: %v", got)
	}
	e.follows.Add(-2)
	if got := limits(); !slices.Equal(got, slices.Repeat([]string{"190.7 MiB, 2.0 GiB"}, 4)) {
		t.Errorf("when two are left: %v", got)
	}
}
