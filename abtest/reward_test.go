package abtest

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// rewarded is an experiment of v1 and v2 with settings of the newest arm's job file.
func (r *rig) rewarded(e job.Experiment) {
	r.t.Helper()
	if e.Coverage = 1; e.Assign == "" {
		e.Assign = job.AssignSticky
	}
	r.exec(`UPDATE kappactl.version SET spec = jsonb_set(spec, '{experiment}', $1::jsonb) WHERE number = 2`, document{e})
	r.ok(ledger.ABStart, arms(.5, .5))
}

func bernoulli(source job.RewardSource) *job.Reward {
	return &job.Reward{Kind: job.Bernoulli, Direction: job.Up, Source: source, Window: time.Hour, Grace: 10 * time.Minute}
}

// exposed records subjects in an arm, that long ago.
func (r *rig) exposed(arm string, ago time.Duration, subjects ...string) {
	r.t.Helper()
	r.exposedAt(arm, time.Now().Add(-ago), subjects...)
}

func (r *rig) exposedAt(arm string, at time.Time, subjects ...string) {
	r.t.Helper()
	r.exec(`INSERT INTO kappactl.assignment (job, run, subject, arm, epoch, probability, exposed_at)
		SELECT job, run, unnest($1::text[]), $2, epoch, 500000, $3 FROM kappactl.route
		ON CONFLICT (job, run, subject) DO UPDATE SET exposed_at = excluded.exposed_at`, subjects, arm, at)
}

func (r *rig) reports(rewards ...Reward) []RewardCode {
	r.t.Helper()
	codes, err := Store{}.Record(r.t.Context(), r.pool, "orders", rewards)
	if err != nil {
		r.t.Fatal(err)
	}
	return codes
}

func (r *rig) tallies(clock time.Time) [][]policy.Tally {
	r.t.Helper()
	e, err := open(r.t.Context(), r.pool, "orders")
	if err != nil || e == nil {
		r.t.Fatal(err)
	}
	out, err := readTallies(r.t.Context(), r.pool, e, clock)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// The log of the specification (vector 18): a window of an hour, ten minutes of grace.
func TestRewardsAreAttributedByTheirTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rewarded(job.Experiment{Reward: bernoulli(job.RewardSource{})})
	var base time.Time
	clock := func(minutes time.Duration) { // exposures happen at fixed times; it is so many minutes after the first
		base = time.Now().Truncate(time.Second).Add(-minutes * time.Minute)
		r.exposedAt("v1", base, "u1")
		r.exposedAt("v2", base.Add(10*time.Minute), "u2")
		r.exposedAt("v2", base.Add(20*time.Minute), "u4")
	}
	reward := func(event, subject string, at time.Duration) Reward {
		return Reward{EventID: event, Subject: subject, Value: 1, At: base.Add(at * time.Minute)}
	}
	want := func(codes []RewardCode, want ...RewardCode) {
		t.Helper()
		if !reflect.DeepEqual(codes, want) {
			t.Errorf("%v, want %v", codes, want)
		}
	}
	clock(31)
	want(r.reports(reward("a", "u1", 30), reward("a", "u1", 30)), RewardAccepted, RewardDuplicate)
	clock(46)
	want(r.reports(reward("a", "u1", 30), reward("b", "u1", 45)), RewardDuplicate, RewardAccepted)
	clock(71)
	want(r.reports(reward("c", "u2", 70), reward("d", "u3", 70), reward("e", "u2", 5)), RewardOutside, RewardOrphan, RewardBefore)
	clock(91)
	got := r.tallies(time.Now())
	if v1, v2 := got[0][0], got[0][1]; v1 != (policy.Tally{N: 1, Sum: 1, Squares: 1}) || v2 != (policy.Tally{N: 2}) {
		t.Errorf("%+v", got)
	}
	clock(95)
	want(r.reports(reward("f", "u4", 50)), RewardLate)
	other := reward("a", "u1", 30)
	other.Value = 0
	want(r.reports(other), RewardConflict)
	if got := r.tallies(time.Now()); got[0][1].Sum != 0 {
		t.Errorf("a late reward counts: %+v", got)
	}
}

func TestParkedRewardsCountOnceTheirSubjectComes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := bernoulli(job.RewardSource{})
	s.Kind, s.Clip = job.Gaussian, &[2]float64{0, 10}
	r.rewarded(job.Experiment{Reward: s})
	early := time.Now().Add(-50 * time.Minute)
	codes := r.reports(Reward{"1", "a", 3, early}, Reward{"2", "a", 4, early}, Reward{"3", "b", 90, early}, Reward{"4", "c", 1, early})
	if !reflect.DeepEqual(codes, []RewardCode{RewardOrphan, RewardOrphan, RewardOrphan, RewardOrphan}) {
		t.Fatal(codes)
	}
	r.exposed("v2", time.Hour, "a", "b")
	r.exposed("v2", 40*time.Minute, "c")
	for range 2 { // counting again changes nothing
		r.tx(func(tx *pg.Tx) error {
			b, err := openBook(t.Context(), tx, "orders")
			if err != nil {
				return err
			}
			return b.adoptOrphans(t.Context(), tx)
		})
	}
	got := r.tallies(time.Now().Add(time.Hour))[0][1]
	if got != (policy.Tally{N: 3, Sum: 17, Squares: 149}) { // 3+4, 90 clipped to 10, and one before its exposure
		t.Errorf("%+v", got)
	}
}

func TestWhatIsNoRewardIsRefusedByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	good := Reward{"x", "u", 1, now}
	if codes := r.reports(good); codes[0] != RewardNotRunning {
		t.Error(codes)
	}
	r.rewarded(job.Experiment{Reward: bernoulli(job.RewardSource{})})
	r.exposed("v1", time.Minute, "u", "日本")
	bad := []Reward{
		{"1", "", 1, now},
		{"", "u", 1, now},
		{"2", strings.Repeat("x", 257), 1, now},
		{"3", "u", math.NaN(), now},
		{"4", "u", math.Inf(1), now},
		{"5", "u", .5, now},
		{"6", "u", 1, now.Add(6 * time.Minute)},
		{"7", "u\x00", 1, now},
		{"8", "\xff", 1, now},
		{"9", "u", 1, time.Time{}},
	}
	codes := r.reports(append(bad, Reward{"12", "日本", 1, now})...)
	for i := range bad {
		if codes[i] != RewardInvalid {
			t.Errorf("%+v is %s", bad[i], codes[i])
		}
	}
	if codes[len(bad)] != RewardAccepted {
		t.Error("what is wrong in a batch takes the rest with it")
	}
	if codes := r.reports(); len(codes) != 0 {
		t.Error(codes)
	}
	r.ok(ledger.ABStop, ledger.Args{})
	if codes := r.reports(good); codes[0] != RewardNotRunning {
		t.Error(codes)
	}
	if _, err := (Store{}).Record(t.Context(), r.pool, "nothing", []Reward{good}); !errors.Is(err, ErrUnknownJob) {
		t.Error(err)
	}
}
