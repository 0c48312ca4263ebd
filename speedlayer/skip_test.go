package speedlayer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// Tombstones that the job skips are counted as records and are neither rows nor dead letters, in batches of nothing else too.
func TestSkippedTombstonesAreNeitherRowsNorDeadLetters(t *testing.T) {
	t.Parallel()
	skip := func(s *job.Spec) { s.Source.OnError.SkipTombstones = true }
	r := newRig(t, kafkatest.Fake(t), 1, `SELECT k, count(*) AS n, sum(v) AS total FROM source GROUP BY k`, skip)
	some := func() {
		r.change(change{key: "1", value: `{"k":"a","v":1}`}, change{key: "1"}, change{key: "2"}, change{key: "3"}, change{key: "4", value: `{"k":"a","v":2}`})
	}
	some()
	r.startReplay(1)
	r.agent("a", func(e *Engine) { e.most = 1 })
	r.build()
	some()
	r.caughtUp()
	if diff := cmp.Diff([]string{"(a,4,6)"}, r.served()); diff != "" {
		t.Error(diff)
	}
	if n := r.one(`SELECT count(*) FROM kappactl.dead_letter`); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	if n := r.one(`SELECT sum(records) FROM kappactl.position`); n != 10 {
		t.Errorf("%d records counted, want 10", n)
	}
}
