package speedlayer

import (
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestAnAgentThatReachesNoBrokerLeavesItsWorkToOthers: PostgreSQL renewed its leases, and what it held stood still.
func TestAnAgentThatReachesNoBrokerLeavesItsWorkToOthers(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*rig){
		"live":   (*rig).startLive,
		"replay": func(r *rig) { r.startReplay(0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), 4, sums)
			r.agents.Store(2)
			for p := range int32(4) {
				r.produce(p, 200, 10)
			}
			start(r)
			r.agent("cut off", func(e *Engine) { e.Kafka.Brokers = []string{"127.0.0.1:1"} })
			kafkatest.Until(t, "it has claimed something", func() bool {
				return r.one(`SELECT (SELECT count(*) FROM kappactl.position WHERE owner = 'cut off') + (SELECT count(*) FROM kappactl.segment WHERE owner = 'cut off')`) > 0
			})
			r.agent("good", nil)
			if name == "replay" {
				r.build()
			}
			r.caughtUp()
			r.equal()
			if name == "live" {
				kafkatest.Until(t, "the other one holds them all", func() bool {
					return r.one(`SELECT count(*) FROM kappactl.position WHERE owner = 'good'`) == 4
				})
			}
		})
	}
}

// TestTheOnlyAgentKeepsItsPartitionsWhileTheBrokersAreAway: there is nobody to leave them to, and it goes on at once when they are back.
func TestTheOnlyAgentKeepsItsPartitionsWhileTheBrokersAreAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	e := r.engine("a")
	now := e.Now()
	l := &live{run: &run{Engine: e, version: &version{ref: r.ref}, log: r.log}, owned: map[job.Partition]*owned{}, held: claims{}}
	o := &owned{failing: now.Add(-100 * e.config.Lease)}
	l.owned[o.partition] = o
	if err := l.leaveUnread(t.Context(), 1); err != nil || len(l.owned) != 1 {
		t.Errorf("%d partitions are left (%v)", len(l.owned), err)
	}
}
