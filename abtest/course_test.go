package abtest

import (
	"math"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func (r *rig) course() Course {
	r.t.Helper()
	c, err := Store{}.Course(r.t.Context(), r.pool, "orders")
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func TestTheCourseOfARun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := (Store{}).Course(t.Context(), r.pool, "orders"); err == nil {
		t.Error("a job without an experiment has a course")
	}
	r.ok(ledger.ABStart, sticky(arms(.5, .5)))
	if c := r.course(); c.Curves != nil || c.Comparison != nil || len(c.Decisions) != 1 {
		t.Errorf("without rewards: %+v", c)
	}
	r.exec(`UPDATE kappactl.experiment SET started_at = clock_timestamp() - interval '10 hours', settings = '{"coverage": 1, "assign": "sticky",
		"reward": {"kind": "gaussian", "direction": "up", "clip": [0, 10], "source": {}, "window": 3600000000000, "grace": 0},
		"decide": {"alpha": 0.05, "mde": 1, "min_runtime": 86400000000000, "min_subjects": 400, "max_runtime": 864000000000000, "on_timeout": "pause"},
		"guardrails": [{"name": "errors", "kind": "threshold", "action": "pause"}, {"name": "unseen", "kind": "threshold", "action": "warn"}]}'`)
	r.exec(`UPDATE kappactl.decision SET at = clock_timestamp() - interval '10 hours'`)
	r.exec(`INSERT INTO kappactl.reward_source (job, run) VALUES ('orders', 1)`)
	for subject, of := range map[string]struct {
		arm    string
		hours  float64
		reward float64
	}{"a": {"v1", 8.95, 2}, "b": {"v1", 4.95, 4}, "c": {"v2", 8.95, 100}, "d": {"v2", 4.95, -1}, "open": {"v2", .5, 7}} {
		r.exec(`INSERT INTO kappactl.assignment (job, run, subject, arm, epoch, probability, exposed_at, reward)
			VALUES ('orders', 1, $1, $2, 1, 500000, clock_timestamp() - make_interval(mins => $3), $4)`, subject, of.arm, int(of.hours*60), of.reward)
	}
	r.exec(`INSERT INTO kappactl.assignment (job, run, subject, arm, epoch, probability, exposed_at, reward, crossed)
		VALUES ('orders', 1, 'both', 'v2', 1, 500000, clock_timestamp() - interval '9 hours', 9, true)`)
	r.exec(`INSERT INTO kappactl.guardrail (job, run, name, state, breached, seen_at) VALUES ('orders', 1, 'errors', 'fail', true, now())`)
	r.ok(ledger.ABWeights, arms(.1, .9))
	r.ok(ledger.ABPause, ledger.Args{})
	c := r.course()
	if got := c.Curves[0].Points; len(got) != 2 || got[0].Mean != 2 || got[1].Mean != 3 || got[1].Subjects != 2 {
		t.Errorf("v1: %+v", got)
	}
	if got := c.Curves[1].Points; len(got) != 2 || got[0].Mean != 10 || got[1].Mean != 5 { // clipped; whose window is open, or who crossed, is left out
		t.Errorf("v2: %+v", got)
	}
	if e := c.Comparison.Estimates.Arms; len(e) != 2 || e[0].Mean != 3 || e[1].Mean != 5 || e[1].Difference == nil || *e[1].Difference != 2 || *e[1].Lo > 2 || *e[1].Hi < 2 {
		t.Errorf("estimates: %+v", e)
	}
	if g := c.Comparison.Guards; len(g) != 2 || !g[0].Breached || g[0].State != "fail" || g[0].Action != job.GuardPause || g[1].Name != "unseen" || g[1].State != "" {
		t.Errorf("guardrails: %+v", g)
	}
	if w := c.WeightsOver(101); w[0][0] != .5 || w[1][50] != .5 || w[0][100] != 1 || w[1][100] != 0 {
		t.Errorf("weights: %v %v %v", w[0][0], w[1][50], w[0][100])
	}
	means := c.MeansOver(10)
	if !math.IsNaN(means[0][0]) || means[0][2] != 2 || means[0][9] != 3 || means[1][9] != 5 {
		t.Errorf("means: %v", means)
	}
	r.ok(ledger.ABStop, ledger.Args{})
	if c := r.course(); c.EndedAt == nil || !c.End().Equal(*c.EndedAt) || c.Decisions[len(c.Decisions)-1].Verdict != Over {
		t.Errorf("ended: %+v", c)
	}
}

// routerOf is a Router whose clock stands where the test has put it.
func routerOf(pool *pg.Pool) (r *Router, move func(time.Duration)) {
	now := time.Now()
	r = NewRouter(pool, func() time.Time { return now })
	return r, func(d time.Duration) { now = now.Add(d) }
}

func TestAForgottenSubjectIsForgottenByAgentsWithinAMinute(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(ledger.ABStart, sticky(arms(1, 0)))
	router, move := routerOf(r.pool)
	arm := func() string {
		t.Helper()
		a, err := router.Expose(t.Context(), "orders", "u1", "")
		if err != nil || !a.Recorded {
			t.Fatal(a, err)
		}
		return a.Version
	}
	if got := arm(); got != "v1" {
		t.Errorf("it reads %s", got)
	}
	r.ok(ledger.ABWeights, arms(0, 1))
	if _, err := (Store{}).Forget(t.Context(), r.pool, "orders", "u1", "ann"); err != nil {
		t.Fatal(err)
	}
	move(knownFor + time.Second)
	if got := arm(); got != "v2" {
		t.Errorf("after it was forgotten it reads %s", got)
	}
	r.ok(ledger.ABStop, ledger.Args{})
	move(2 * time.Second)
	if a, err := router.Expose(t.Context(), "orders", "u1", ""); err != nil || a.Version != "v1" || a.Why != NoSplit {
		t.Errorf("after the end: %+v, %v", a, err)
	}
}

// Two agents that record the same subjects at the same time while the weights move give each the same arm, and one row.
func TestTwoAgentsAgreeOnArms(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(ledger.ABStart, sticky(arms(.5, .5)))
	var routers [2]*Router
	for i := range routers {
		routers[i] = NewRouter(r.pool, time.Now)
	}
	const subjects = 200
	got := make([][subjects]string, len(routers))
	done := make(chan error)
	for i, router := range routers {
		for n := range subjects {
			go func() {
				a, err := router.Expose(t.Context(), "orders", string(rune('a'+n%26))+string(rune('a'+n/26)), "")
				got[i][n] = a.Version
				done <- err
			}()
		}
	}
	r.ok(ledger.ABWeights, arms(.1, .9))
	for range len(routers) * subjects {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got[0] != got[1] {
		t.Error("the agents do not agree")
	}
	if s := r.status(); s.Arms[0].Subjects+s.Arms[1].Subjects != subjects {
		t.Errorf("%d and %d subjects are recorded", s.Arms[0].Subjects, s.Arms[1].Subjects)
	}
}
