package speedlayer

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// TestProgressCountsWhatRunningSegmentsHaveRead: a replay of one long segment was at 0 % until it was done.
func TestProgressCountsWhatRunningSegmentsHaveRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 200, 500)
	r.startReplay(0)
	wait, stand := make(chan struct{}), false
	r.agent("a", func(e *Engine) {
		e.at = func(point string) {
			if point == faultpoint.SegmentStaged && !stand {
				stand = true
				<-wait
			}
		}
	})
	kafkatest.Until(t, "what is read shows", func() bool { return positions(t, r.pool, r.ref)[0].Remaining == 1 })
	close(wait)
	r.build()
	r.equal()
}

// TestRemainingIsAboveZeroWhileASegmentIsNotDone: at 0 the table is built.
func TestRemainingIsAboveZeroWhileASegmentIsNotDone(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Replaying)
	freeze(t, pool, ref, counts(), frozen(1, 0, 100, 200, 50))
	for reached, want := range map[string]int64{"NULL": 100, "120": 80, "150": 51, "900": 51} {
		exec(t, pool, `UPDATE kappactl.segment SET state = 'claimed', reached = `+reached+` WHERE from_offset = 100`, nil)
		if got := positions(t, pool, ref)[0].Remaining; got != want {
			t.Errorf("reached %s: %d remain, want %d", reached, got, want)
		}
	}
}

// TestDeadLettersAreKeptWholeForTheFirstOfAReason: a bad producer filled the control schema with 5.6 kB a record.
func TestDeadLettersAreKeptWholeForTheFirstOfAReason(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Live)
	write := func(k *larder, from, n int, reason string) {
		var letters []letter
		for i := range n {
			letters = append(letters, letter{
				partition: frozen(1, 0, 0, 0, 0).Partition, offset: int64(from + i), reason: reason, detail: "d", key: []byte("k"), payload: make([]byte, 4000), size: 6000,
			})
		}
		inTx(t, pool, func(tx *pg.Tx) error {
			if err := k.strip(t.Context(), tx, ref, letters); err != nil {
				return err
			}
			return writeLetters(t.Context(), tx, ref, letters)
		})
	}
	first := &larder{}
	write(first, 0, keptLetters-10, "not_json")
	write(first, 5_000, 20, "bad_value")
	write(&larder{}, 2_000, 500, "not_json") // another agent
	want := []string{"(bad_value,20,20,6000)", fmt.Sprintf("(not_json,%d,%d,6000)", keptLetters+490, keptLetters)}
	if diff := cmp.Diff(want, lines(t, pool, `SELECT reason, count(*) AS a, count(payload) AS b, min(size) AS c FROM kappactl.dead_letter GROUP BY 1 ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
}

// TestDeadLettersOfVersionsThatEndedLongAgoAreDeleted when another one is removed.
func TestDeadLettersOfVersionsThatEndedLongAgoAreDeleted(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Retired)
	old := job.Ref{Job: ref.Job, Number: 2}
	newVersion(t, pool, old, counts(), job.Failed, "")
	for _, of := range []job.Ref{ref, old} {
		inTx(t, pool, func(tx *pg.Tx) error {
			return writeLetters(t.Context(), tx, of, []letter{{partition: frozen(1, 0, 0, 0, 0).Partition, offset: 4, reason: "not_json"}})
		})
	}
	exec(t, pool, `UPDATE kappactl.version SET ended_at = clock_timestamp() - CASE number WHEN 2 THEN interval '8 days' ELSE interval '1 day' END`, nil)
	inTx(t, pool, func(tx *pg.Tx) error { return Store{}.Remove(t.Context(), tx, job.Version{Ref: ref, Schema: "public"}) })
	if diff := cmp.Diff([]string{"(1)"}, lines(t, pool, `SELECT number FROM kappactl.dead_letter`)); diff != "" {
		t.Error(diff)
	}
}
