package speedlayer

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// stage adds version n of the rig's job, frozen over the topic.
func (r *rig) stage(n job.Number) *rig {
	r.t.Helper()
	other := *r
	other.ref.Number = n
	newVersion(r.t, r.pool, other.ref, r.layout, job.Staged, mustJSON(r.t, r.spec))
	other.startReplay(10)
	return &other
}

// The budget of replays is one for all agents: the version that was frozen first goes first, the next one begins by itself when it
// has nothing left to read, and an agent that dies holds no place.
func TestReplaysTakeTurnsOverAllAgents(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 0, 60)
	r.startReplay(10)
	second := r.stage(2)
	third := r.stage(3)

	var most atomic.Int64
	one := func(e *Engine) {
		e.config.Replays = 1
		e.at = func(point string) {
			if point == faultpoint.SegmentClaimed {
				n := int64(r.one(`SELECT count(DISTINCT number) FROM kappactl.segment WHERE state = 'claimed'`))
				most.Store(max(most.Load(), n))
			}
		}
	}
	// The first agent dies with a segment of v1 in hand.
	ctx, die := context.WithCancel(t.Context())
	dead := r.engine("dead")
	dead.config.Replays = 1
	dead.at = func(point string) {
		if point == faultpoint.SegmentClaimed {
			die()
		}
	}
	if err := dead.Run(ctx, r.ref); err != nil {
		t.Fatal(err)
	}
	exec(t, r.pool, `UPDATE kappactl.segment SET state = 'claimed', owner = 'dead', lease = clock_timestamp() + interval '300 milliseconds'
		WHERE id = (SELECT min(id) FROM kappactl.segment WHERE number = 1 AND state <> 'done')`, nil)

	for _, v := range []*rig{third, second, r} { // the last one first: the order is not theirs
		v.agent("a", one)
		v.agent("b", one)
	}
	kafkatest.Until(t, "every version has been replayed in its turn", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.segment WHERE state <> 'done'`) == 0
	})
	if n := most.Load(); n != 1 {
		t.Errorf("%d versions replayed at once, the limit is 1", n)
	}
	order := lines(t, r.pool, `SELECT number FROM (SELECT number, min(done_at) AS first, max(done_at) AS last FROM kappactl.segment GROUP BY number) g ORDER BY first`)
	if len(order) != 3 || order[0] != "(1)" || order[1] != "(2)" || order[2] != "(3)" {
		t.Errorf("versions were replayed in the order %v", order)
	}
	overlap := r.one(`SELECT count(*) FROM (SELECT number, min(done_at) AS first, max(done_at) AS last FROM kappactl.segment GROUP BY number) a
		JOIN (SELECT number, min(done_at) AS first, max(done_at) AS last FROM kappactl.segment GROUP BY number) b
		ON a.number < b.number AND b.first < a.last`)
	if overlap != 0 {
		t.Errorf("%d replays began before the one before them had ended", overlap)
	}
}

func TestAReplayThatNobodyMayReadTakesNoPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 0, 20)
	r.startReplay(10)
	second := r.stage(2)
	before := func(want int) {
		t.Helper()
		var n int
		inTx(t, r.pool, func(tx *pg.Tx) (err error) {
			n, err = Store{}.Before(t.Context(), tx, second.ref)
			return err
		})
		if n != want {
			t.Errorf("%d replays come before v2, want %d", n, want)
		}
	}
	before(1)
	exec(t, r.pool, `UPDATE kappactl.version SET paused_at = clock_timestamp() WHERE number = 1`, nil)
	before(0)
	exec(t, r.pool, `UPDATE kappactl.version SET paused_at = NULL, dialect = dialect + 1 WHERE number = 1`, nil)
	before(0)
	exec(t, r.pool, `UPDATE kappactl.version SET dialect = dialect - 1 WHERE number = 1`, nil)
	before(1)
	exec(t, r.pool, `UPDATE kappactl.segment SET state = 'failed', fault = 'gap' WHERE number = 1`, nil)
	before(0)
}
