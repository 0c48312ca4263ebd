package readiness

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

func TestDeadLettersAreJudgedByTheLimitAndBesideLive(t *testing.T) {
	const limit = 0.01
	counts := func(records, dead int64) Counts { return Counts{Records: records, DeadLetters: dead} }
	for _, c := range []struct {
		name string
		n    Counts
		live *Counts
		sick bool
	}{
		{"few records with few dead letters say nothing", counts(999, 9), nil, false},
		{"few records, most of them dead", counts(20, 10), nil, true},
		{"at the limit", counts(100_000, 1000), nil, false},
		{"over the limit", counts(100_000, 1001), nil, true},
		{"over the limit, as live is", counts(100_000, 1001), new(counts(100_000, 1001)), true},
		{"within the limit, live has none", counts(100_000, 150), new(counts(100_000, 0)), true},
		{"within the limit, as live", counts(100_000, 150), new(counts(100_000, 100)), false},
		{"a handful more than live", counts(5000, 9), new(counts(100_000, 0)), false},
		{"live has seen too little", counts(100_000, 150), new(counts(10, 0)), false},
	} {
		got := TooManyDeadLetters(job.Ref{Job: "j", Number: 1}, limit, c.n, c.live, false)
		if got.IsZero() == c.sick {
			t.Errorf("%s: %q", c.name, got.Text())
		}
	}
}

func TestACompleteReplayIsJudgedWhateverItsSize(t *testing.T) {
	for _, c := range []struct {
		records, dead int64
		sick          bool
	}{{0, 0, false}, {1, 0, false}, {1, 1, true}, {200, 1, false}, {200, 3, true}} {
		n := Counts{Records: c.records, DeadLetters: c.dead}
		if got := TooManyDeadLetters(job.Ref{Job: "j", Number: 1}, 0.01, n, nil, true); got.IsZero() == c.sick {
			t.Errorf("%d of %d: %q", c.dead, c.records, got.Text())
		}
	}
}

func TestRecentDeadLettersAreThoseOfTheLastTenMinutes(t *testing.T) {
	var d DeadLetters
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range int64(3600) {
		d.Observe(Counts{At: start.Add(time.Duration(i) * time.Second), Records: 10 * i, DeadLetters: i})
	}
	if all := d.All(); all.Records != 35990 || all.DeadLetters != 3599 {
		t.Errorf("%+v", all)
	}
	if got := d.Recent(); got.Records != 6000 || got.DeadLetters != 600 {
		t.Errorf("%+v", got)
	}
}
