package readiness

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func limits() job.ReadySettings { return job.ReadySettings{MaxLagTime: 5 * time.Second} }

// good is a sample of a partition of a candidate that is caught up.
func good() Sample {
	return Sample{
		Partition: job.Partition{Topic: "t", ID: 3}, Phase: job.CatchingUp, Owned: true,
		Position: 100, LastStable: 100, End: 100, Unowned: time.Minute,
	}
}

func TestTheFirstRuleThatMatchesWins(t *testing.T) {
	before := int64(10)
	for name, c := range map[string]struct {
		change func(*Sample)
		want   job.Verdict
		reason string
	}{
		"caught up":                      {func(*Sample) {}, job.Ready, "all records are read"},
		"within the time":                {func(s *Sample) { s.Position, s.LagTime = 50, 5*time.Second }, job.Ready, "50 records, 5s behind"},
		"over the time":                  {func(s *Sample) { s.Position, s.LagTime = 50, 6*time.Second }, job.Lagging, "50 records, 6s behind"},
		"not smaller after a minute":     {func(s *Sample) { s.Position, s.LagTime, s.Before = 90, time.Minute, &before }, job.NotConverging, "10 a minute ago"},
		"smaller after a minute":         {func(s *Sample) { s.Position, s.LagTime, s.Before = 91, time.Minute, &before }, job.Lagging, "9 records"},
		"no progress":                    {func(s *Sample) { s.Position, s.LagTime, s.Idle = 50, time.Minute, 30*time.Second }, job.Stalled, "no progress for 30s"},
		"idle with nothing to read":      {func(s *Sample) { s.Idle = time.Hour }, job.Ready, ""},
		"held for a minute":              {func(s *Sample) { s.Position, s.LastStable, s.Held = 2, 2, time.Minute }, job.BlockedByTxn, "98 records held back by an open transaction for 1m"},
		"held for a moment":              {func(s *Sample) { s.Position, s.LastStable, s.Held, s.LagTime = 2, 2, time.Second, time.Second }, job.Ready, ""},
		"held for longer":                {func(s *Sample) { s.Position, s.LastStable, s.Held, s.LagTime = 2, 2, 6*time.Second, 6*time.Second }, job.Lagging, "98 records held back"},
		"no worker yet":                  {func(s *Sample) { s.Owned, s.Unowned = false, time.Second }, job.Starting, "waiting for a worker"},
		"no worker for long":             {func(s *Sample) { s.Owned = false }, job.Stalled, "no worker"},
		"paused":                         {func(s *Sample) { s.Paused = true }, job.Stalled, "paused"},
		"staged":                         {func(s *Sample) { s.Phase = job.Staged }, job.Starting, ""},
		"an end older than the position": {func(s *Sample) { s.Position = 101 }, job.Unknown, "older than the position"},
		"no answer":                      {func(s *Sample) { s.Unknown = reason.BrokersSilent(errors.New("no leader")) }, job.Unknown, "no leader"},
		"a gap": {
			func(s *Sample) {
				s.Fault = job.Fault{Kind: job.FaultGap, From: 3, To: 10}
				s.Unknown = reason.BrokersSilent(errors.New("no leader"))
			},
			job.Unhealthy, "gap t/3 [3,10)",
		},
		"too large":           {func(s *Sample) { s.Fault = job.Fault{Kind: job.FaultTooLarge, From: 7, Detail: "5 MB"} }, job.Unhealthy, "t/3@7: 5 MB"},
		"replaying":           {func(s *Sample) { s.Phase, s.Remaining, s.FrozenEnd = job.Replaying, 40, 90 }, job.ReplayingRanges, "40 records left in the replay range, then 10 newer"},
		"replayed":            {func(s *Sample) { s.Phase, s.FrozenEnd = job.Replaying, s.End }, job.ReplayingRanges, "the replay range is read"},
		"queued":              {func(s *Sample) { s.Phase, s.Queued = job.Replaying, reason.Queued(2, 0) }, job.Starting, "replay slots in use"},
		"no segment for long": {func(s *Sample) { s.Phase, s.Remaining, s.Idle = job.Replaying, 40, 2*time.Minute }, job.Stalled, "no segment finished for 2m"},
		"building":            {func(s *Sample) { s.Phase, s.FrozenEnd, s.Idle = job.Building, 100, time.Hour }, job.ReplayingRanges, "being built"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			c.change(&s)
			got := Judge(s, limits())
			if got.Verdict != c.want || !strings.Contains(got.Reason.Text(), c.reason) {
				t.Errorf("got %s: %s", got.Verdict, got.Reason)
			}
		})
	}
}

func TestMaxLagLetsAFewRecordsBehindPass(t *testing.T) {
	s := good()
	s.Position, s.LagTime = 90, time.Hour
	l := limits()
	l.MaxLag = 10
	if got := Judge(s, l); got.Verdict != job.Ready {
		t.Errorf("%+v", got)
	}
	l.MaxLag = 9
	if got := Judge(s, l); got.Verdict == job.Ready {
		t.Errorf("%+v", got)
	}
}

func TestAPartitionOnWhichLiveIsAsFarBehindDoesNotBlock(t *testing.T) {
	s := good()
	s.Position, s.LagTime = 50, time.Hour
	live := int64(50)
	s.Live = &live
	if got := Judge(s, limits()); got.Verdict != job.Ready || !strings.Contains(got.Reason.Text(), "level with the live version") {
		t.Errorf("%+v", got)
	}
	live = 51
	if got := Judge(s, limits()); got.Verdict != job.Lagging {
		t.Errorf("%+v", got)
	}
	live = 50
	s.Fault.Kind = job.FaultGap
	if got := Judge(s, limits()); got.Verdict != job.Unhealthy {
		t.Errorf("a fault is never excused: %+v", got)
	}
}

func TestReadyHoldsUntilItWasStable(t *testing.T) {
	parts := []Judgement{{Verdict: job.Ready}, {Verdict: job.Ready}}
	w := Version{Phase: job.CatchingUp, WithinFor: 9 * time.Second, StableFor: 10 * time.Second}
	if got := Overall(parts, w); got.Verdict != job.Holding || got.Reason.Text() != "within limits; ready in 1s" {
		t.Errorf("%+v", got)
	}
	w.WithinFor = 10 * time.Second
	if got := Overall(parts, w); got.Verdict != job.Ready {
		t.Errorf("%+v", got)
	}
	w.Unhealthy = reason.DeadLetters(job.Ref{Job: "j", Number: 1}, 2, 10, 0.2, 0.1)
	if got := Overall(parts, w); got.Verdict != job.Unhealthy {
		t.Errorf("%+v", got)
	}
	if got := Overall(nil, Version{Phase: job.CatchingUp}); got.Verdict != job.Unknown {
		t.Errorf("no partition: %+v", got)
	}
}

func TestTheWorstPartitionSpeaksForTheOthers(t *testing.T) {
	ok := Judgement{Verdict: job.Ready}
	bad := Judgement{job.Stalled, reason.NoWorker()}
	text := bad.Reason.Text()
	for want, parts := range map[string][]Judgement{
		text:                              {ok, bad},
		text + " (and 1 partition more)":  {bad, ok, bad},
		text + " (and 2 partitions more)": {bad, bad, bad},
		"1 partition within limits":       {ok},
		"2 partitions within limits":      {ok, ok},
	} {
		if got := Overall(parts, Version{Phase: job.CatchingUp}); got.Reason.Text() != want {
			t.Errorf("got %q, want %q", got.Reason.Text(), want)
		}
	}
}

func anySample(t *rapid.T) Sample {
	offset := rapid.Int64Range(0, 50)
	span := func(label string) time.Duration {
		return time.Duration(rapid.IntRange(0, 200).Draw(t, label)) * time.Second
	}
	s := Sample{
		Partition: job.Partition{Topic: "t"}, Phase: rapid.SampledFrom(job.Phases()).Draw(t, "phase"),
		Paused: rapid.Bool().Draw(t, "paused"), Unknown: rapid.SampledFrom([]reason.Reason{{}, {}, reason.NoOffsets()}).Draw(t, "unknown"),
		Owned: rapid.Bool().Draw(t, "owned"), Position: offset.Draw(t, "position"), Remaining: offset.Draw(t, "remaining"),
		FrozenEnd: offset.Draw(t, "frozen"), LastStable: offset.Draw(t, "stable"), End: offset.Draw(t, "end"),
		LagTime: span("lag"), Unowned: span("seen"), Idle: span("idle"), Held: span("held"),
	}
	s.Fault.Kind = rapid.SampledFrom([]job.FaultKind{"", "", "", job.FaultGap, job.FaultQuery}).Draw(t, "fault")
	if rapid.Bool().Draw(t, "before") {
		n := offset.Draw(t, "was")
		s.Before = &n
	}
	if rapid.Bool().Draw(t, "live") {
		n := offset.Draw(t, "live at")
		s.Live = &n
	}
	return s
}

func TestReadyIsOnlyWhatIsKnownHealthyAndWithinTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySample(t)
		got := Judge(s, limits())
		if !slices.Contains(job.Verdicts(), got.Verdict) || got.Reason.IsZero() {
			t.Fatalf("%+v", got)
		}
		if got.Verdict != job.Ready {
			return
		}
		behindAlike := s.Live != nil && s.Position >= *s.Live
		switch {
		case !s.Unknown.IsZero(), s.Fault.Kind != "", s.Paused, !s.Owned, s.Phase == job.Staged, s.replaying():
			t.Fatalf("ready although it is not: %+v", s)
		case s.End < s.Position || s.End < s.LastStable:
			t.Fatalf("ready by a stale sample: %+v", s)
		case s.Unread() > 0 && s.LagTime > limits().MaxLagTime && !behindAlike:
			t.Fatalf("ready although behind: %+v", s)
		}
	})
}

func TestOverallIsNeverBetterThanAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []Judgement
		for range rapid.IntRange(1, 5).Draw(t, "partitions") {
			parts = append(parts, Judge(anySample(t), limits()))
		}
		got := Overall(parts, Version{Phase: job.CatchingUp, WithinFor: time.Hour})
		order := job.Verdicts()
		for _, p := range parts {
			if slices.Index(order, got.Verdict) > slices.Index(order, p.Verdict) {
				t.Fatalf("%s over %v", got.Verdict, parts)
			}
		}
	})
}

func TestUnreadIsNeverNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if s := anySample(t); s.Unread() < 0 || s.Readable() < 0 {
			t.Fatalf("%+v: %d, %d", s, s.Unread(), s.Readable())
		}
	})
}
