package speedlayer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// A broker comes back without the end of its log, and others write to the same offsets before anybody looks: offsets alone show
// nothing of it. Neither a version that follows nor a replay reads on as if the log were the one it knew.
func TestALogThatWasCutOffAndWrittenAnewIsAGap(t *testing.T) {
	t.Parallel()
	b := kafkatest.StartReal(t)
	r := newRig(t, b.Brokers, 1, sums)
	r.startLive()
	stop := r.agent("a", nil)
	for i := range 10 {
		r.produce(0, 10*i, 10) // a batch each
	}
	r.caughtUp()
	stop()
	before := r.served()

	replay := job.Ref{Job: r.ref.Job, Number: 2}
	newVersion(t, r.pool, replay, r.layout, job.Staged, mustJSON(t, r.spec))
	inTx(t, r.pool, func(tx *pg.Tx) error {
		return Store{}.Freeze(t.Context(), tx, at(replay, r.layout), r.frozen(0))
	})

	b.Kill(t)
	b.CutLog(t, r.topic, 0)
	b.Start(t)
	end, _ := kafkatest.Ends(t, b.Brokers, r.topic, 0)
	if end <= 0 || end >= 100 {
		t.Fatalf("the log ends at %d: nothing was cut off", end)
	}
	r.produce(0, 500, 120) // over where the version stands
	r.agent("b", nil)
	got := r.fault(0)
	if got.Kind != job.FaultGap || got.From != end || got.To != 100 || !strings.Contains(got.Detail, "cut off at offset") {
		t.Fatalf("fault %+v, want a gap [%d,100)", got, end)
	}
	if n := r.next(0); n != 100 {
		t.Errorf("the position went on to %d", n)
	}
	if diff := cmp.Diff(before, r.served()); diff != "" {
		t.Errorf("what was written anew is mixed with what was lost:\n%s", diff)
	}
	r.acceptGap(job.Range{From: end, To: 100})
	r.produce(0, 700, 1)
	kafkatest.Until(t, "the version goes on behind the gap", func() bool { return r.next(0) == end+121 })
	if counted := lines(t, r.pool, `SELECT from_offset, to_offset, counted FROM kappactl.accepted_gap`); len(counted) != 1 || !strings.HasSuffix(counted[0], ",100,t)") {
		t.Errorf("the gap is noted as %v", counted)
	}

	r.ref = replay
	r.phase(job.Replaying)
	r.agent("c", nil)
	kafkatest.Until(t, "the segment is not read as if it were the one that was frozen", func() bool {
		return len(lines(t, r.pool, `SELECT 1 FROM kappactl.segment WHERE state = 'failed' AND fault = 'gap'`)) == 1
	})
	if n := r.one(`SELECT fault_to - fault_from FROM kappactl.segment`); n != int(100-end) {
		t.Errorf("%d offsets are missing, want %d", n, 100-end)
	}
	r.acceptGap(job.Range{From: end, To: 100})
	kafkatest.Until(t, "what is left is replayed", func() bool {
		return r.one(`SELECT coalesce(sum(records), 0) FROM kappactl.segment WHERE state = 'done'`) == int(end)
	})
}

func (r *rig) acceptGap(gap job.Range) {
	r.t.Helper()
	inTx(r.t, r.pool, func(tx *pg.Tx) error {
		stood, err := Store{}.AcceptGap(r.t.Context(), tx, r.ref, r.topic, 0, gap, "ann")
		if err == nil && !stood {
			r.t.Errorf("no gap %s stands", gap)
		}
		return err
	})
}

// A change of leader that loses nothing is no gap, wherever the position stands.
func TestAChangeOfLeaderThatLosesNothingIsNoGap(t *testing.T) {
	t.Parallel()
	c := kafkatest.FakeCluster(t, kfake.NumBrokers(2))
	r := newRig(t, c.ListenAddrs(), 1, sums)
	r.startLive()
	r.agent("a", nil)
	for round := range 4 {
		r.produce(0, 100*round, 50)
		r.caughtUp()
		if err := c.MoveTopicPartition(r.topic, 0, int32(round%2)); err != nil {
			t.Fatal(err)
		}
	}
	r.produce(0, 900, 50)
	r.caughtUp()
	r.equal()
}
