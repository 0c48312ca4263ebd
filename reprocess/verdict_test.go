package reprocess

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
)

func limits() job.ReadySettings { return job.ReadySettings{MaxLagTime: 5 * time.Second} }

// good is a sample of a partition of a candidate that is caught up.
func good() Sample {
	return Sample{
		Partition: job.Partition{Topic: "t", ID: 3}, Phase: job.CatchingUp, Owned: true,
		Position: 100, LastStable: 100, End: 100, Unowned: time.Minute,
	}
}

// TestCountsInReasonsReadAsEverywhere: tables and reasons stand side by side.
func TestCountsInReasonsReadAsEverywhere(t *testing.T) {
	for n, want := range map[int64]string{0: "0", -7: "-7", 999: "999", 1000: "1,000", -1000: "-1,000", -999999: "-999,999", 1234567: "1,234,567", 100_000: "100,000"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	before := int64(1_000_000)
	s := good()
	s.End, s.LastStable, s.LagTime, s.Before = 1_234_667, 1_234_667, time.Minute, &before
	if got := Judge(s, limits()); got.Reason != "1,234,567 records, 1m behind; it was 1,000,000 a minute ago" {
		t.Error(got.Reason)
	}
	d := Diff{A: "v1", B: "v2", OnlyA: 5427, Same: 5453}
	if _, text := judgeDiff(d, job.DiffLimit{MaxChanged: 0.01}); text != "0 keys changed, 5,427 only in v1, 0 only in v2 (49.9% of 10,880, allowed 1%)" {
		t.Error(text)
	}
}

func TestTheFirstRuleThatMatchesWins(t *testing.T) {
	before := int64(10)
	for name, c := range map[string]struct {
		change func(*Sample)
		want   job.Verdict
		reason string
	}{
		"caught up":                      {func(*Sample) {}, job.Ready, "everything is read"},
		"within the time":                {func(s *Sample) { s.Position, s.LagTime = 50, 5*time.Second }, job.Ready, "50 records, 5s behind"},
		"over the time":                  {func(s *Sample) { s.Position, s.LagTime = 50, 6*time.Second }, job.Lagging, "50 records, 6s behind"},
		"not smaller after a minute":     {func(s *Sample) { s.Position, s.LagTime, s.Before = 90, time.Minute, &before }, job.NotConverging, "it was 10 a minute ago"},
		"smaller after a minute":         {func(s *Sample) { s.Position, s.LagTime, s.Before = 91, time.Minute, &before }, job.Lagging, "9 records"},
		"no progress":                    {func(s *Sample) { s.Position, s.LagTime, s.Idle = 50, time.Minute, 30*time.Second }, job.Stalled, "no progress for 30s"},
		"idle with nothing to read":      {func(s *Sample) { s.Idle = time.Hour }, job.Ready, ""},
		"held for a minute":              {func(s *Sample) { s.Position, s.LastStable, s.Held = 2, 2, time.Minute }, job.BlockedByTxn, "0 readable, 98 held behind an open transaction"},
		"held for a moment":              {func(s *Sample) { s.Position, s.LastStable, s.Held, s.LagTime = 2, 2, time.Second, time.Second }, job.Ready, ""},
		"held for longer":                {func(s *Sample) { s.Position, s.LastStable, s.Held, s.LagTime = 2, 2, 6*time.Second, 6*time.Second }, job.Lagging, "98 held"},
		"no worker yet":                  {func(s *Sample) { s.Owned, s.Unowned = false, time.Second }, job.Starting, "no worker"},
		"no worker for long":             {func(s *Sample) { s.Owned = false }, job.Stalled, "no worker"},
		"paused":                         {func(s *Sample) { s.Paused = true }, job.Stalled, "paused"},
		"staged":                         {func(s *Sample) { s.Phase = job.Staged }, job.Starting, ""},
		"an end older than the position": {func(s *Sample) { s.Position = 101 }, job.Unknown, "older than the position"},
		"no answer":                      {func(s *Sample) { s.Unknown = "no leader" }, job.Unknown, "no leader"},
		"a gap": {
			func(s *Sample) { s.Fault = job.Fault{Kind: job.FaultGap, From: 3, To: 10}; s.Unknown = "no leader" },
			job.Unhealthy, "gap t/3 [3,10)",
		},
		"too large":           {func(s *Sample) { s.Fault = job.Fault{Kind: job.FaultTooLarge, From: 7, Detail: "5 MB"} }, job.Unhealthy, "t/3@7: 5 MB"},
		"replaying":           {func(s *Sample) { s.Phase, s.Remaining, s.FrozenEnd = job.Replaying, 40, 90 }, job.ReplayingRanges, "40 of the frozen range and 10 behind it"},
		"replayed":            {func(s *Sample) { s.Phase, s.FrozenEnd = job.Replaying, s.End }, job.ReplayingRanges, "the frozen range is read"},
		"queued":              {func(s *Sample) { s.Phase, s.Queued = job.Replaying, "queued: 2 replays run" }, job.Starting, "queued"},
		"no segment for long": {func(s *Sample) { s.Phase, s.Remaining, s.Idle = job.Replaying, 40, 2*time.Minute }, job.Stalled, "no segment was finished"},
		"building":            {func(s *Sample) { s.Phase, s.FrozenEnd, s.Idle = job.Building, 100, time.Hour }, job.ReplayingRanges, "being built"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			c.change(&s)
			got := Judge(s, limits())
			if got.Verdict != c.want || !strings.Contains(got.Reason, c.reason) {
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
	if got := Judge(s, limits()); got.Verdict != job.Ready || !strings.Contains(got.Reason, "as far as live") {
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
	parts := []Judged{{job.Ready, ""}, {job.Ready, ""}}
	w := Whole{Phase: job.CatchingUp, Good: 9 * time.Second, StableFor: 10 * time.Second}
	if got := Overall(parts, w); got.Verdict != job.Holding || got.Reason != "within the limits for 9s of 10s" {
		t.Errorf("%+v", got)
	}
	w.Good = 10 * time.Second
	if got := Overall(parts, w); got.Verdict != job.Ready {
		t.Errorf("%+v", got)
	}
	w.Sick = "dead letters"
	if got := Overall(parts, w); got.Verdict != job.Unhealthy {
		t.Errorf("%+v", got)
	}
	if got := Overall(nil, Whole{Phase: job.CatchingUp}); got.Verdict != job.Unknown {
		t.Errorf("no partition: %+v", got)
	}
}

func TestTheWorstPartitionSpeaksForTheOthers(t *testing.T) {
	bad := Judged{job.Stalled, "no progress for 30s"}
	for want, parts := range map[string][]Judged{
		bad.Reason:                              {{job.Ready, ""}, bad},
		bad.Reason + " (and 1 partition more)":  {bad, {job.Ready, ""}, bad},
		bad.Reason + " (and 2 partitions more)": {bad, bad, bad},
		"1 partition within the limits":         {{job.Ready, ""}},
		"2 partitions within the limits":        {{job.Ready, ""}, {job.Ready, ""}},
	} {
		if got := Overall(parts, Whole{Phase: job.CatchingUp}); got.Reason != want {
			t.Errorf("got %q, want %q", got.Reason, want)
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
		Paused: rapid.Bool().Draw(t, "paused"), Unknown: rapid.SampledFrom([]string{"", "", "no leader"}).Draw(t, "unknown"),
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
		if !slices.Contains(job.Verdicts(), got.Verdict) || got.Reason == "" {
			t.Fatalf("%+v", got)
		}
		if got.Verdict != job.Ready {
			return
		}
		behindAlike := s.Live != nil && s.Position >= *s.Live
		switch {
		case s.Unknown != "", s.Fault.Kind != "", s.Paused, !s.Owned, s.Phase == job.Staged, s.replaying():
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
		var parts []Judged
		for range rapid.IntRange(1, 5).Draw(t, "partitions") {
			parts = append(parts, Judge(anySample(t), limits()))
		}
		got := Overall(parts, Whole{Phase: job.CatchingUp, Good: time.Hour})
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
		if s := anySample(t); s.Unread() < 0 || s.readable() < 0 {
			t.Fatalf("%+v: %d, %d", s, s.Unread(), s.readable())
		}
	})
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "24h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m", time.Minute: "1m", 61 * time.Second: "1m1s",
		time.Hour + time.Second: "1h0m1s", 0: "0s", 1500 * time.Microsecond: "2ms", 20 * time.Second: "20s",
	} {
		if got := words(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
