package reprocess_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
)

func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in: %s", w, text)
		}
	}
}

func withChecks(checks ...job.Check) func(*plan.Staging) {
	return func(s *plan.Staging) { s.Spec.Checks = checks }
}

func auto(s *plan.Staging) { s.Promote = job.PromoteAuto }

func firstLive(t *testing.T, ends ...int64) *world {
	t.Helper()
	return firstLiveFor(t, newWorld(t, ends...))
}

// impatient gives up flips early.
func impatient(t *testing.T, ends ...int64) *world {
	t.Helper()
	w := newWorld(t, ends...)
	w.config.PromoteDeadline = 600 * time.Millisecond
	return firstLiveFor(t, w)
}

func firstLiveFor(t *testing.T, w *world) *world {
	t.Helper()
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "live", job.ExitOK)
	return w
}

func TestAShorterHistoryIsRefusedAndItsTokenAcceptsExactlyIt(t *testing.T) {
	w := firstLive(t, 100, 50)
	w.brokers.set(func(b *brokers) {
		b.starts[0] = 40
		b.times = func(_, offset int64) time.Time { return time.Unix(offset, 0) }
	})
	s := w.stage("bbb")
	d := w.finish(s.Deployment, "live", job.ExitGap)
	has(t, d.Message, "events/0: v1 begins at offset 0, v2 at 40 (40 offsets later), everything before 1970-01-01T00:00:40Z",
		"rows of v1 older than what v2 covers: unknown: no key is a time", "serve.keep", "archive")
	_, token, ok := strings.Cut(d.Next, "--accept-shorter-history=")
	if !ok || len(token) != 12 {
		t.Fatalf("next: %s", d.Next)
	}
	w.await("cleaning", func() bool { return w.version(2).EndedAt != nil })
	if v := w.version(2); v.Phase != job.Failed || *v.ExitCode != int(job.ExitGap) {
		t.Errorf("%+v", v)
	}
	w.brokers.set(func(b *brokers) { b.starts[0] = 41 })
	other := w.stage("bbb", func(s *plan.Staging) { s.AcceptShorterHistory = token })
	w.finish(other.Deployment, "live", job.ExitGap)
	w.brokers.set(func(b *brokers) { b.starts[0] = 40 })
	accepted := w.stage("bbb", func(s *plan.Staging) { s.AcceptShorterHistory, s.Promote = token, job.PromoteAuto })
	w.finish(accepted.Deployment, "live", job.ExitOK)
	if got := w.shown(); got != 110 {
		t.Errorf("the view shows %d, want 110", got)
	}
}

func TestKeptTimeCountsAsCoverage(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	w.finish(w.stage("aaa", keptBy(true)).Deployment, "live", job.ExitOK)
	w.brokers.set(func(b *brokers) { b.starts[0] = 40; b.at = func(int) int64 { return 60 } })
	w.finish(w.stage("bbb", keptBy(true)).Deployment, "verified", job.ExitOK)
}

// keptBy keeps rows for a day, by a column that is a time of the record, or another one.
func keptBy(record bool) func(s *plan.Staging) {
	return func(s *plan.Staging) {
		s.Spec.Serve.Keep = 24 * time.Hour
		s.Layout.States = append(s.Layout.States, job.StateColumn{
			Name: "at", Type: "timestamp with time zone", Combine: `greatest(t."at", e."at")`, Aggregate: `max(e."at")`,
		})
		s.Layout.View = append(s.Layout.View, job.ViewColumn{Name: "at", Type: "timestamp with time zone", Finish: `s."at"`})
		s.Layout.Keep = &job.Keep{Column: "at", Type: "timestamp with time zone", For: 24 * time.Hour, ByRecord: record}
	}
}

// TestTimeKeptByAnotherKeyIsNoCoverage: of departures in a week the log may have lost bookings of two months ago.
func TestTimeKeptByAnotherKeyIsNoCoverage(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	w.finish(w.stage("aaa", keptBy(false)).Deployment, "live", job.ExitOK)
	w.sql(`UPDATE public.counts__v1 SET at = now() + interval '7 days'`)
	w.brokers.set(func(b *brokers) { b.starts[0] = 40; b.at = func(int) int64 { return 60 } })
	d := w.finish(w.stage("bbb", keptBy(false)).Deployment, "live", job.ExitGap)
	has(t, d.Message, "up to all 1 that serve.keep keeps: it goes by at", "events/0: v1 begins at offset 0, v2 at 40")
	w.sql(`UPDATE public.counts__v1 SET at = now() - interval '7 days'`)
	w.finish(w.stage("ccc", keptBy(false)).Deployment, "verified", job.ExitOK)
}

func TestARecreatedTopicIsAGap(t *testing.T) {
	w := impatient(t, 100)
	w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
	w.brokers.set(func(b *brokers) { b.id, b.ends[0] = 2, 500 })
	w.await("unhealthy", func() bool { return w.version(2).Verdict == job.Unhealthy && w.version(1).StaleSince != nil })
	has(t, w.version(2).Reason, "topic recreated", "events/0")
	if a := w.ask(2, ledger.Promote, ledger.Args{}); a.Code != job.ExitGap && a.Code != job.ExitNotCaughtUp {
		t.Errorf("promote: %+v", a)
	}
	third := w.stage("ccc")
	d := w.finish(third.Deployment, "live", job.ExitGap)
	has(t, d.Message, "deleted and created again")
}

func TestAGapStopsTheDeployWithItsPlaceAndLeavesLiveAlone(t *testing.T) {
	w := firstLive(t, 100)
	w.setIdle(2, true)
	s := w.stage("bbb")
	w.await("replay", func() bool { return w.version(2).Phase == job.Replaying })
	w.sql(`UPDATE kappactl.position SET fault = 'gap', fault_from = 3, fault_to = 10 WHERE number = 2`)
	d := w.finish(s.Deployment, "", job.ExitGap)
	has(t, d.Message, "gap events/0 [3,10)")
	has(t, d.Next, "kappactl resume counts v2 --accept-gap events/0:3-10")
	if w.live() != "v1" || w.shown() != 100 {
		t.Errorf("live %s shows %d", w.live(), w.shown())
	}
	// Accepted by hand: the deployment goes on.
	w.sql(`UPDATE kappactl.position SET fault = '' WHERE number = 2`)
	w.await("healthy", func() bool { return w.deployment(s.Deployment).ExitCode == nil })
	w.setIdle(2, false)
	w.finish(s.Deployment, "verified", job.ExitOK)
}

func TestAQueryErrorFailsTheVersionNamingSegmentAndCause(t *testing.T) {
	w := firstLive(t, 100)
	w.setIdle(2, true)
	s := w.stage("bbb")
	w.await("replay", func() bool { return w.version(2).Phase == job.Replaying })
	w.sql(`UPDATE kappactl.segment SET state = 'failed', fault = 'query', error = 'segment 7: division by zero', fault_from = 40, fault_to = 41 WHERE number = 2`)
	d := w.finish(s.Deployment, "verified", job.ExitUnhealthy)
	has(t, d.Message, "events/0 [40,41)", "division by zero")
	w.await("cleaning", func() bool { v := w.version(2); return v.Phase == job.Failed && v.EndedAt != nil })
	if again := w.stage("bbb"); again.Number != 3 {
		t.Errorf("deploying again makes a new staging: %+v", again)
	}
}

func TestAPartitionAddedInAReplayAndAfterItIsReadFromItsFirstOffset(t *testing.T) {
	w := newWorld(t, 100, 50)
	w.run(1, nil)
	w.setIdle(1, true)
	s := w.stage("aaa")
	w.await("replay", func() bool { return w.version(1).Phase == job.Replaying })
	w.brokers.grow(10)
	w.await("third partition", func() bool { return len(w.version(1).Partitions) == 3 })
	w.setIdle(1, false)
	w.finish(s.Deployment, "live", job.ExitOK)
	w.exact()
	w.brokers.grow(7)
	w.exact()
	w.await("fourth partition", func() bool { return len(w.version(1).Partitions) == 4 })
}

func TestPromoteWaitsForAPartitionThatTheCandidateHasNotTakenUp(t *testing.T) {
	w := impatient(t, 100)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	// The brokers do not show the partition yet to the candidate's controller.
	w.sql(`INSERT INTO kappactl.position (job, number, topic_id, topic, partition, next, covers_from, frozen_end)
		SELECT job, number, topic_id, topic, 1, 0, 0, 0 FROM kappactl.position WHERE number = 1`)
	a := w.ask(2, ledger.Promote, ledger.Args{})
	if a.Code != job.ExitNotCaughtUp {
		t.Errorf("%+v", a)
	}
	has(t, a.Text(), "counts/v2 has not taken up events/1 yet")
	w.brokers.grow(10)
	w.must(2, ledger.Promote, ledger.Args{})
	w.exact()
}

func TestAReplayGoesOnWhenMuchHasArrived(t *testing.T) {
	w := newWorld(t, 100)
	w.config.ExtendOver = 10
	w.setIdle(1, true)
	w.run(1, nil)
	s := w.stage("aaa")
	w.await("replay", func() bool { return w.version(1).Phase == job.Replaying })
	w.brokers.produce(0, 500)
	w.setIdle(1, false)
	w.finish(s.Deployment, "live", job.ExitOK)
	var rounds, segments int
	if err := w.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM kappactl.event WHERE kind = 'extended'), (SELECT count(*) FROM kappactl.segment)`).Scan(&rounds, &segments); err != nil {
		t.Fatal(err)
	}
	if rounds != 1 || segments != 2 {
		t.Errorf("%d rounds, %d segments", rounds, segments)
	}
	w.exact()
}

func TestStartPointsThatTheLogNoLongerHoldsAreGaps(t *testing.T) {
	for name, change := range map[string]func(*job.Replay){
		"time":    func(r *job.Replay) { r.Start = "-30d" },
		"offsets": func(r *job.Replay) { r.Start, r.Offsets = "", map[string]int64{"events/0": 20} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 100)
			w.brokers.set(func(b *brokers) { b.starts[0] = 40; b.at = func(int) int64 { return 40 } })
			w.run(1, nil)
			d := w.finish(w.stage("aaa", func(s *plan.Staging) { change(&s.Spec.Replay) }).Deployment, "live", job.ExitGap)
			has(t, d.Message, "events/0", "40")
		})
	}
}

// With retention by time alone, what is deleted is older than what a start within that time asks for.
func TestAStartWithinTheRetentionIsNoGapHoweverLittleTheLogHolds(t *testing.T) {
	w := newWorld(t, 100)
	w.brokers.set(func(b *brokers) {
		b.starts[0], b.flags = 40, job.TopicFacts{RetentionMS: 2 * time.Hour.Milliseconds(), RetentionBytes: -1}
		b.at = func(int) int64 { return 40 }
	})
	w.run(1, nil)
	from := func(start string) func(*plan.Staging) {
		return func(s *plan.Staging) { s.Spec.Replay.Start = start }
	}
	w.finish(w.stage("aaa", from("-3h")).Deployment, "live", job.ExitGap)
	w.finish(w.stage("bbb", from("-1h")).Deployment, "live", job.ExitOK)
	if n := w.shown(); n != 60 {
		t.Errorf("the view shows %d", n)
	}
}

func TestOffsetsOfPartitionsThatAreNotThereAreRefused(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	d := w.finish(w.stage("aaa", func(s *plan.Staging) {
		s.Spec.Replay.Start, s.Spec.Replay.Offsets = "offsets", map[string]int64{"events/0": 20, "events/7": 3}
	}).Deployment, "live", job.ExitUsage)
	has(t, d.Message, "events/7")
}

// latest moves with every record: the token that was printed for it accepts it although the offset is another one by then, and
// promote, which compares frozen offsets, takes it too.
func TestTheTokenOfLatestAcceptsALaterOffset(t *testing.T) {
	w := firstLive(t, 100)
	latest := func(s *plan.Staging) { s.Spec.Replay.Start, s.Promote = "latest", job.PromoteAuto }
	d := w.finish(w.stage("bbb", latest).Deployment, "live", job.ExitGap)
	_, token, _ := strings.Cut(d.Next, "--accept-shorter-history=")
	w.brokers.produce(0, 7)
	s := w.stage("bbb", latest, func(s *plan.Staging) { s.AcceptShorterHistory = token })
	w.finish(s.Deployment, "live", job.ExitOK)
	w.brokers.produce(0, 5)
	w.await("only what came after the deploy", func() bool { return w.shown() == 5 })
}

func TestADeployWithNothingToReplayIsWarnedOf(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	d := w.finish(w.stage("aaa", func(s *plan.Staging) { s.Spec.Replay.Start = "latest" }).Deployment, "live", job.ExitOK)
	if !d.Warning.Is(reason.CodeNothingToReplay) {
		t.Errorf("warning %q", d.Warning.Text())
	}
}

func TestARollupOverACompactedTopicIsRefused(t *testing.T) {
	w := newWorld(t, 100)
	w.brokers.set(func(b *brokers) { b.flags.Compacted = true })
	w.run(1, nil)
	d := w.finish(w.stage("aaa").Deployment, "live", job.ExitUsage)
	has(t, d.Message, "compacted")
}

func TestBrokersThatDoNotAnswerAreUnknownAndNeverReady(t *testing.T) {
	w := impatient(t, 100, 50)
	w.finish(w.stage("bbb").Deployment, "verified", job.ExitOK)
	w.brokers.set(func(b *brokers) { b.parts[1] = errors.New("no leader") })
	w.await("unknown", func() bool { return w.version(2).Verdict == job.Unknown })
	v := w.version(2)
	if v.LagRecords != nil || v.Partitions[0].LagRecords == nil || v.Partitions[1].LagRecords != nil {
		t.Errorf("the other partition is known, the sum is not: %+v", v)
	}
	has(t, v.Reason, "no leader")
	a := w.ask(2, ledger.Promote, ledger.Args{})
	if a.Code != job.ExitNotCaughtUp || w.live() != "v1" {
		t.Errorf("promote: %+v", a)
	}
	w.brokers.set(func(b *brokers) { b.parts[1] = nil })
	w.await("known again", func() bool { return w.version(2).Verdict == job.Ready })
	w.must(2, ledger.Promote, ledger.Args{})
}

func TestAnOpenTransactionIsNotCaughtUp(t *testing.T) {
	w := newWorld(t, 103)
	w.brokers.set(func(b *brokers) { b.stable[0] = 2 })
	w.run(1, nil)
	s := w.stage("aaa", func(s *plan.Staging) { s.Spec.Ready.MaxLagTime = 50 * time.Millisecond })
	var p status.Partition
	w.await("lagging", func() bool {
		v := w.version(1)
		if len(v.Partitions) > 0 {
			p = v.Partitions[0]
		}
		return v.Verdict == job.Lagging && p.Verdict == job.Lagging
	})
	if *p.LagRecords != 0 || *p.HeldRecords != 101 || *p.Position != 2 {
		t.Errorf("%+v", p)
	}
	has(t, p.Reason, "101 records held back by an open transaction")
	w.brokers.set(func(b *brokers) { b.stable[0] = -1 })
	w.finish(s.Deployment, "live", job.ExitOK)
	w.exact()
}
