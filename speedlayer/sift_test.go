package speedlayer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// TestASegmentThatFailsWithoutItsBadRecordsTooStops: found each time, they were left out each time, and it was replayed for ever.
func TestASegmentThatFailsWithoutItsBadRecordsTooStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, failing)
	r.produce(0, 200, 30)
	kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":777}`, `{"k":"y","v":1}`, `{"k":"y","v":2}`)
	r.startReplay(0)
	exec(t, r.pool, `ALTER TABLE `+pg.Ident("public", r.ref.Staging())+` ADD CHECK (k <> 'y' OR n < 2)`, nil)
	r.agent("a", nil)
	if got := r.fault(0); got.Kind != job.FaultQuery || got.From != 0 || got.To != 33 || !strings.Contains(got.Detail, "check constraint") {
		t.Errorf("fault %+v, want the query's error over [0,33)", got)
	}
	if n := r.one(`SELECT count(*) FROM kappactl.dead_letter`); n != 0 {
		t.Errorf("%d dead letters of a segment that has not landed", n)
	}
}

// TestASearchThatTakesLongSplitsItsSegmentWhereItHasGot: bad records further on would fail what is replayed without those that it found.
func TestASearchThatTakesLongSplitsItsSegmentWhereItHasGot(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, failing)
	pad := bytes.Repeat([]byte("x"), 450_000)
	for i := range 7 { // a fetch brings two
		kafkatest.ProduceRecords(t, r.brokers, []*kgo.Record{{Topic: r.topic, Value: fmt.Appendf(nil, `{"k":"key-%d","v":777,"pad":%q}`, i, pad)}},
			kgo.ProducerBatchCompression(kgo.NoCompression()))
	}
	r.startReplay(0)
	e := r.engine("a")
	w := r.worker(e)
	g, err := w.claim(t.Context())
	if err != nil || g == nil {
		t.Fatalf("claimed %+v, %v", g, err)
	}
	now := time.Now()
	e.Now = func() time.Time {
		now = now.Add(maxReading)
		return now
	}
	if err := w.sift(t.Context(), *g, &dataError{errFenced}); err != nil {
		t.Fatal(err)
	}
	want := []string{"(0,2,open)", "(2,7,open)"}
	if diff := cmp.Diff(want, lines(t, r.pool, `SELECT from_offset, to_offset, state FROM kappactl.segment ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
}

// worker is one replay worker of an engine.
func (r *rig) worker(e *Engine) *worker {
	r.t.Helper()
	v, err := e.load(r.t.Context(), r.ref)
	if err != nil {
		r.t.Fatal(err)
	}
	of := &run{Engine: e, version: v, log: r.log, quiet: newQuiet(r.log, e.Now)}
	w := &worker{replay: of.newReplay(r.t.Context(), target{ref: of.ref})}
	r.t.Cleanup(w.close)
	if err := w.open(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return w
}
