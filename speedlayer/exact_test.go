package speedlayer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/retry"
)

// killBackends ends the database sessions of the pool's transactions, as a crashed server or a cut connection would.
func (r *rig) killBackends() {
	_, err := r.pool.Exec(context.WithoutCancel(r.t.Context()), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'`)
	if err != nil && !pg.Unreachable(err) {
		r.t.Errorf("terminate: %v", err)
	}
}

// TestExactlyOnceWhenConnectionsDieAtEveryStep cuts the connection of the transaction at each fault point, again and
// again, in replay and in live, with two agents at work.
func TestExactlyOnceWhenConnectionsDieAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		faultpoint.SegmentStaged, faultpoint.SegmentBeforeCommit, faultpoint.LiveBegin, faultpoint.LivePositions, faultpoint.LiveUpserted,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), 2, sums)
			for p := range int32(2) {
				r.produce(p, 200, 300)
			}
			r.startReplay(60)
			var passed, killed atomic.Int64
			kill := func(e *Engine) {
				e.at = func(at string) {
					if at == point && passed.Add(1)%3 == 1 && killed.Load() < 8 {
						killed.Add(1)
						r.killBackends()
					}
				}
			}
			r.agents.Store(2)
			r.agent("a", kill)
			r.agent("b", kill)
			r.build()
			for i := range 15 {
				r.produce(int32(i%2), 1000+i*20, 20)
				r.caughtUp()
			}
			r.equal()
			if killed.Load() == 0 {
				t.Errorf("the point %s was never passed: this test proves nothing", point)
			}
			if n := r.one(`SELECT sum(records) FROM kappactl.position`); n != 900 {
				t.Errorf("%d records counted, want 900", n)
			}
		})
	}
}

// TestAnUnknownCommitIsDecidedByClaimingAgain cuts the connection while COMMIT is on its way: half of the commits happen,
// half do not, and the client cannot tell.
func TestAnUnknownCommitIsDecidedByClaimingAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	// A deferred trigger makes COMMIT itself slow, so that it can be cut.
	exec(t, r.pool, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.03); RETURN NULL; END $$`, nil)
	exec(t, r.pool, `CREATE CONSTRAINT TRIGGER slow AFTER UPDATE OF next ON kappactl.position DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()`, nil)
	r.startLive()
	var commits atomic.Int64
	var late sync.WaitGroup
	defer late.Wait()
	r.agent("a", func(e *Engine) {
		e.at = func(at string) {
			if at != faultpoint.LiveBeforeCommit {
				return
			}
			if n := commits.Add(1); n <= 20 && n%2 == 0 {
				late.Go(func() { // after 15 or 45 ms: before or after the commit happened
					delay := time.NewTimer(time.Duration(15+30*(n/2%2)) * time.Millisecond)
					defer delay.Stop()
					<-delay.C
					_, _ = r.pool.Exec(context.WithoutCancel(t.Context()), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
						WHERE datname = current_database() AND pid <> pg_backend_pid() AND query ILIKE 'commit%' AND state = 'active'`)
				})
			}
		}
	})
	for i := range 30 {
		r.produce(0, 200+i*10, 10)
		r.caughtUp()
	}
	r.equal()
	if commits.Load() <= 20 {
		t.Errorf("%d commits: too few to have cut any", commits.Load())
	}
}

// TestAStoppedAgentIsFenced freezes agent a inside its transaction's preparation until b has its partitions. R07. Of mode lambda an
// epoch begins meanwhile, too: what a would commit is of another one.
func TestAStoppedAgentIsFenced(t *testing.T) { // pitfall 3
	t.Parallel()
	const rotated = "live.fetched, before a rotation"
	for _, name := range []string{faultpoint.LiveFetched, rotated, faultpoint.SegmentReading, faultpoint.SegmentClaimed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			point, options := name, []rigOption{}
			if name == rotated {
				point, options = faultpoint.LiveFetched, append(options, ofLambda)
			}
			r := newRig(t, kafkatest.Fake(t), 1, sums, options...)
			r.produce(0, 200, 200)
			r.startReplay(100)
			stalled, wake := make(chan struct{}), make(chan struct{})
			waking := sync.OnceFunc(func() { close(wake) })
			var first atomic.Bool
			r.agent("a", func(e *Engine) {
				e.at = func(at string) {
					if at == point && first.CompareAndSwap(false, true) {
						close(stalled)
						<-wake
					}
				}
			})
			defer waking()
			live := point == faultpoint.LiveFetched
			if live {
				r.build()
			}
			r.produce(0, 400, 100)
			<-stalled
			// The whole process stands still, its lease keeper too: take the lease away.
			taken := pgx.NamedArgs{}
			exec(t, r.pool, `UPDATE kappactl.segment SET owner = 'x', claim = claim + 1, lease = clock_timestamp() - interval '1 s' WHERE state = 'claimed'`, taken)
			exec(t, r.pool, `UPDATE kappactl.position SET owner = 'x', claim = claim + 1, lease = clock_timestamp() - interval '1 s' WHERE owner = 'a'`, taken)
			if name == rotated {
				g := &generations{rig: r, ctx: t.Context()}
				if err := g.rotate(); err != nil {
					t.Fatal(err)
				}
			}
			r.agent("b", nil)
			if !live {
				r.build()
			}
			kafkatest.Until(t, "b has committed", func() bool { return r.next(0) == 300 })
			waking()
			r.produce(0, 600, 50)
			r.caughtUp()
			r.equal()
			if name == rotated && r.one(`SELECT count(*) FROM public.sums__v1 WHERE _epoch <> 1`) != 0 {
				t.Error("rows were committed into the epoch that had ended")
			}
		})
	}
}

func TestTwoEnginesThatLoseTheirLeasesAgainAndAgainStayExact(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 3, sums)
	for p := range int32(3) {
		r.produce(p, 200, 400)
	}
	r.startReplay(50)
	r.agents.Store(2)
	short := func(e *Engine) { e.config.Lease = 300 * time.Millisecond }
	r.agent("a", short)
	r.agent("b", short)
	segments := r.thief("segment", "state = 'claimed'")
	r.build()
	if n := segments.taken.Load(); n == 0 {
		t.Error("no segment was taken from its worker: this test proves nothing")
	}
	positions := r.thief("position", "true")
	sent := 1200
	for retry.Sleep(t.Context(), 10*time.Millisecond) == nil && !positions.done() {
		r.produce(int32(sent/20%3), 1000+sent, 20)
		sent += 20
	}
	r.caughtUp()
	r.equal()
	if n := r.one(`SELECT sum(records) FROM kappactl.position`); n != sent {
		t.Errorf("%d records counted, want %d", n, sent)
	}
}

// thief takes leases away. Its number is bounded: on a machine so slow that no work ends between two thefts, an unbounded one would let
// no work end.
type thief struct {
	taken atomic.Int64
	ended chan struct{}
}

const thefts = 60

// thief takes leases of the table's rows until it has taken 60 of them or the test ends. Half of them run out under their owner, so that
// the other agent takes over; half go to an agent that does nothing.
func (r *rig) thief(table, where string) *thief {
	th := &thief{ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(r.t.Context())
	random := rand.New(rand.NewPCG(1, 2))
	sql := `UPDATE kappactl.` + table + ` SET owner = CASE WHEN $1 THEN owner ELSE 'x' END, claim = claim + CASE WHEN $1 THEN 0 ELSE 1 END,
		lease = clock_timestamp() WHERE owner IN ('a', 'b') AND lease > clock_timestamp() AND ` + where + ` AND `
	sql += map[string]string{"segment": "id", "position": "partition"}[table] + ` % 3 = $2`
	go func() {
		defer close(th.ended)
		for th.taken.Load() < thefts && retry.Sleep(ctx, time.Duration(random.IntN(20))*time.Millisecond) == nil {
			done, err := r.pool.Exec(ctx, sql, random.IntN(2) == 0, random.IntN(3))
			if err != nil && ctx.Err() == nil && !pg.Retryable(err) {
				r.t.Errorf("take leases: %v", err)
			}
			th.taken.Add(done.RowsAffected())
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		<-th.ended
	})
	return th
}

func (th *thief) done() bool {
	select {
	case <-th.ended:
		return true
	default:
		return false
	}
}

func TestHoldsAreHonouredToTheExactOffsetAndVoidWhenExpired(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, sums)
	r.startLive()
	r.agent("a", nil)
	for p := range int32(2) {
		r.produce(p, 200, 10)
	}
	r.caughtUp()
	exec(t, r.pool, `UPDATE kappactl.position SET hold = 17, hold_until = clock_timestamp() + interval '1 hour', hold_by = 'me' WHERE partition = 0`, nil)
	exec(t, r.pool, `UPDATE kappactl.position SET hold = 12, hold_until = clock_timestamp() - interval '1 s', hold_by = 'dead' WHERE partition = 1`, nil)
	for p := range int32(2) {
		r.produce(p, 300, 30)
	}
	kafkatest.Until(t, "the barrier is reached", func() bool { return reached(t, r.pool, "me", true) })
	kafkatest.Until(t, "an expired hold is void", func() bool { return r.next(1) == 40 })
	r.produce(0, 500, 30)
	r.produce(1, 500, 30)
	kafkatest.Until(t, "the other partition goes on beside the barrier", func() bool { return r.next(1) == 70 })
	if n := r.next(0); n != 17 {
		t.Errorf("next = %d, want it at the hold, 17", n)
	}
	if diff := cmp.Diff(r.oracle(map[int32]int64{0: 17, 1: 70}), r.served()); diff != "" {
		t.Errorf("at the barrier:\n%s", diff)
	}
	exec(t, r.pool, `UPDATE kappactl.position SET hold_until = clock_timestamp() - interval '1 ms' WHERE hold_by = 'me'`, nil)
	r.caughtUp()
	r.equal()
}

func TestAHeldPartitionIsReadUpToItsHoldAndWithinItsBound(t *testing.T) {
	hold, gap := int64(7), job.Fault{Kind: job.FaultGap}
	o := &owned{next: 5, read: 5, fault: gap}
	o.stopAt(&hold)
	if o.read != 5 || o.fault != gap {
		t.Errorf("read to %d with %+v: what stands before the hold stays", o.read, o.fault)
	}
	o.fault = job.Fault{}
	if !o.fetchable(1000, false) {
		t.Error("want it read up to its hold")
	}
	records := []*kgo.Record{{Offset: 5}, {Offset: 6}, {Offset: 7}, {Offset: 8}}
	o.absorb(kafka.Fetched{Records: records, Next: 9})
	if o.read != 7 || len(o.records) != 2 || o.bytes != 2*recordBytes(records[0]) || o.fetchable(1000, false) || !o.pending() {
		t.Errorf("read to %d, %d records of %d bytes: want those before the hold, and no more to read", o.read, len(o.records), o.bytes)
	}
	o.stopAt(nil)
	if !o.fetchable(1000, false) || o.fetchable(o.bytes, false) {
		t.Error("want it read on behind the hold, within its bound")
	}
	// A fault that was met behind a hold is met again.
	o.absorb(kafka.Fetched{Records: records[2:], Next: 9})
	o.fault = gap
	if o.stopAt(&hold); o.read != 7 || o.fault.Kind != job.FaultNone {
		t.Errorf("read to %d with %+v", o.read, o.fault)
	}
}

func TestCommitsOfTwoVersionsWithKeysInOppositeOrder(t *testing.T) { // P10
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, sums)
	r.startLive()
	r.agents.Store(2)
	r.agent("a", nil)
	r.agent("b", nil)
	kafkatest.Until(t, "both own one", func() bool {
		return r.one(`SELECT count(DISTINCT owner) FROM kappactl.position`) == 2
	})
	for i := range 40 {
		up, down := fmt.Sprintf(`{"k":"key-%02d","v":1}`, i), fmt.Sprintf(`{"k":"key-%02d","v":2}`, 39-i)
		kafkatest.Produce(t, r.brokers, r.topic, 0, up, down)
		kafkatest.Produce(t, r.brokers, r.topic, 1, down, up)
	}
	r.caughtUp()
	r.equal()
}

func TestAgentsStopAtOnceAndFinishTheCommitInHand(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.startLive()
	inside, stopped := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stop := r.agent("a", func(e *Engine) {
		e.at = func(at string) {
			if at == faultpoint.LiveUpserted {
				once.Do(func() { close(inside); <-stopped }) // one loop only
			}
		}
	})
	r.produce(0, 200, 10)
	<-inside
	done := make(chan struct{})
	go func() { stop(); close(done) }()
	close(stopped)
	<-done
	if n := r.next(0); n != 10 && n != 0 {
		t.Errorf("next = %d", n)
	}
	if n := r.one(`SELECT count(*) FROM kappactl.position WHERE owner IS NOT NULL`); n != 0 {
		t.Error("the claim was not released")
	}
	if diff := cmp.Diff(r.oracle(map[int32]int64{0: r.next(0)}), r.served()); diff != "" {
		t.Error(diff)
	}
}
