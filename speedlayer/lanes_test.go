package speedlayer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// relane gives the version another number of lanes, as a deploy in place does: the view merges as many as there ever were.
func (r *rig) relane(n int) {
	r.t.Helper()
	r.layout.Lanes = max(r.layout.Lanes, n)
	args := refArgs(r.ref)
	args["lanes"], args["layout"] = n, mustJSON(r.t, r.layout)
	exec(r.t, r.pool, `UPDATE kappactl.version SET lanes = @lanes, layout = @layout::jsonb WHERE job = @job AND number = @number`, args)
}

func TestLanesChangeUnderWayInReplayAndInLive(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 4, sums, lanes(3))
	for p := range int32(4) {
		r.produce(p, 200, 300)
	}
	r.startReplay(100)
	stop := r.agent("a", nil)
	kafkatest.Until(t, "a segment is done", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.segment WHERE state = 'done'`) > 0
	})
	r.relane(2)
	r.build()
	for i, n := range []int{4, 1, 3} {
		r.relane(n)
		for p := range int32(4) {
			r.produce(p, 1000+100*i, 100)
		}
		r.caughtUp()
		r.equal()
	}
	stop()
	if n := r.one(`SELECT count(DISTINCT lane) FROM public.sums__v1`); n < 3 {
		t.Errorf("rows in %d lanes: this test proves nothing", n)
	}
}

// TestARunTakesUpNewLanes: the rows of partition 3 go to lane 3 once the version has four.
func TestARunTakesUpNewLanes(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 4, sums)
	r.startLive()
	r.agent("a", nil)
	r.produce(3, 200, 50)
	r.caughtUp()
	r.relane(4)
	for i := 0; r.one(`SELECT count(*) FROM public.sums__v1 WHERE lane = 3`) == 0; i++ {
		r.produce(3, 300+i, 1)
		r.caughtUp()
	}
	r.equal()
}

// TestAgentsShareByLane: two agents on four partitions and two lanes write to different rows.
func TestAgentsShareByLane(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 4, sums, lanes(2))
	r.startLive()
	r.agent("a", nil)
	kafkatest.Until(t, "the first has all", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.position WHERE owner = 'a'`) == 4
	})
	r.agents.Store(2)
	r.agent("b", nil)
	kafkatest.Until(t, "the second has its share", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.position WHERE owner = 'b'`) == 2
	})
	got := lines(t, r.pool, `SELECT partition % 2, min(owner), max(owner) FROM kappactl.position GROUP BY 1 ORDER BY 1`)
	if diff := cmp.Diff([]string{"(0,a,a)", "(1,b,b)"}, got); diff != "" {
		t.Errorf("owners by lane: %s", diff)
	}
}
