package abtest

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/serving"
)

func TestWhatIsNoExperimentIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	weights := func(w ...job.ArmWeight) ledger.Args { return ledger.Args{Weights: w} }
	r.refused(ledger.ABStop, ledger.Args{}, job.ExitConflict, reason.CodeABNone)
	r.refused(ledger.ABStart, ledger.Args{}, job.ExitConflict, reason.CodeABNoCandidate) // v2 and v3
	for _, c := range []struct {
		args ledger.Args
		code job.ExitCode
		why  reason.Code
	}{
		{weights(job.ArmWeight{Version: 1, Weight: .9}, job.ArmWeight{Version: 2, Weight: .2}), job.ExitUsage, reason.CodeABWrongWeights},
		{weights(job.ArmWeight{Version: 1, Weight: 1.5}, job.ArmWeight{Version: 2, Weight: -.5}), job.ExitUsage, reason.CodeABWrongWeights},
		{weights(job.ArmWeight{Version: 1, Weight: .5}, job.ArmWeight{Version: 1, Weight: .5}), job.ExitUsage, reason.CodeABWrongWeights},
		{weights(job.ArmWeight{Version: 1, Weight: 1}), job.ExitUsage, reason.CodeABWrongWeights},
		{weights(job.ArmWeight{Version: 2, Weight: .5}, job.ArmWeight{Version: 3, Weight: .5}), job.ExitUsage, reason.CodeABWithoutLive},
		{weights(job.ArmWeight{Version: 1, Weight: .5}, job.ArmWeight{Version: 4, Weight: .5}), job.ExitNotCaughtUp, reason.CodeNotCaughtUp},
		{weights(job.ArmWeight{Version: 1, Weight: .5}, job.ArmWeight{Version: 9, Weight: .5}), job.ExitUsage, ""},
	} {
		if a := r.ask(ledger.ABStart, c.args); a.Code != c.code || c.why != "" && a.Reason.Code != c.why {
			t.Errorf("%+v: exit %d, %s", c.args, a.Code, a.Text())
		}
	}
	for set, code := range map[string]job.ExitCode{
		"paused_at = now()": job.ExitConflict, "verdict = 'unhealthy'": job.ExitUnhealthy, "verdict = 'lagging'": job.ExitNotCaughtUp,
	} {
		r.exec(`UPDATE kappactl.version SET ` + set + ` WHERE number = 2`)
		if a := r.ask(ledger.ABStart, arms(.5, .5)); a.Code != code {
			t.Errorf("an arm with %s: exit %d, %s", set, a.Code, a.Text())
		}
		r.exec(`UPDATE kappactl.version SET paused_at = NULL, verdict = 'ready' WHERE number = 2`)
	}
	r.exec(`CREATE VIEW public.orders__arms AS SELECT 1 AS mine`)
	if a := r.ask(ledger.ABStart, arms(.5, .5)); a.Code != job.ExitConflict || !strings.Contains(a.Text(), "orders__arms") {
		t.Errorf("a view of somebody else: exit %d, %s", a.Code, a.Text())
	}
	r.exec(`DROP VIEW public.orders__arms; CREATE FUNCTION public.orders_for(text) RETURNS text LANGUAGE sql AS 'SELECT $1'`)
	if a := r.ask(ledger.ABStart, arms(.5, .5)); a.Code != job.ExitConflict || !strings.Contains(a.Text(), "orders_for") {
		t.Errorf("a function of somebody else: exit %d, %s", a.Code, a.Text())
	}
	r.exec(`DROP FUNCTION public.orders_for(text)`)
	r.ok(ledger.ABStart, arms(.5, .5))
	r.refused(ledger.ABStart, arms(.5, .5), job.ExitConflict, reason.CodeABRunning)
	r.refused(ledger.ABWeights, arms(.1, .9), job.ExitConflict, reason.CodeABFixed)
	r.ok(ledger.ABStop, ledger.Args{})
	r.ok(ledger.ABStart, sticky(arms(.5, .5)))
	r.refused(ledger.ABWeights, arms(.1, .1, .8), job.ExitUsage, reason.CodeABOtherArms)
	r.refused(ledger.ABWeights, arms(.1, math.MaxFloat64), job.ExitUsage, reason.CodeABWrongWeights)
}

func TestADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dry := arms(.9, .1)
	dry.DryRun = true
	if a := r.ask(ledger.ABStart, dry); a.Code != job.ExitOK || a.Text() != "run 1 of the experiment of orders splits readers between v1 90%, v2 10%" {
		t.Errorf("exit %d, %s", a.Code, a.Text())
	}
	r.refused(ledger.ABStop, ledger.Args{DryRun: true}, job.ExitConflict, reason.CodeABNone)
	r.ok(ledger.ABStart, arms(0, 1))
	if a := r.ask(ledger.ABStop, ledger.Args{DryRun: true}); a.Code != job.ExitOK {
		t.Errorf("exit %d, %s", a.Code, a.Text())
	}
	if got := r.of("u1"); got != "2" {
		t.Errorf("after a dry run of stop u1 reads v%s", got)
	}
}

// An arm whose state is not known yet, as after another agent took over, is waited for.
func TestAnArmThatHasJustStartedIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`UPDATE kappactl.version SET verdict = 'starting' WHERE number = 2`)
	r.run.config.Deadline = 50 * time.Millisecond
	r.refused(ledger.ABStart, arms(.5, .5), job.ExitNotCaughtUp, reason.CodeNotReady)
	r.run.config.Deadline = time.Minute
	got := make(chan ledger.Answer, 1)
	go func() { got <- r.ask(ledger.ABStart, arms(.5, .5)) }()
	r.exec(`UPDATE kappactl.version SET verdict = 'ready' WHERE number = 2`)
	if a := <-got; a.Code != job.ExitOK {
		t.Errorf("exit %d, %s", a.Code, a.Text())
	}
}

// acting is the Controller of reprocess, for acts that ask no broker.
func (r *rig) acting(n int, verb ledger.Verb, args ledger.Args) ledger.Answer {
	r.t.Helper()
	c := reprocess.NewController(reprocess.Deps{
		Pool: r.pool, Serving: serving.New(serving.Config{}), Experiments: Store{}, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Rand: rand.New(rand.NewPCG(1, 1)),
	}, reprocess.Config{})
	store := ledger.NewStore(r.pool)
	id, err := store.Ask(r.t.Context(), ledger.Request{Job: "orders", Number: job.Number(n), Verb: verb, Args: args, By: "ann"})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := c.Answer(r.t.Context(), id, 0); err != nil {
		r.t.Fatal(err)
	}
	a, err := store.Answer(r.t.Context(), id)
	if err != nil || a == nil {
		r.t.Fatalf("no answer: %v", err)
	}
	return *a
}

// While readers read an arm, nothing takes it away; each refusal names the way out.
func TestArmsAreProtected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`UPDATE kappactl.version SET phase = 'standby', standby_until = now() - interval '1 hour' WHERE number = 3`)
	r.ok(ledger.ABStart, arms(.5, .3, .2))
	for _, c := range []struct {
		n    int
		verb ledger.Verb
		why  reason.Code
	}{
		{2, ledger.Abort, reason.CodeABArm},
		{2, ledger.Pause, reason.CodeABArm},
		{3, ledger.Pause, reason.CodeABArm},
		{3, ledger.Retire, reason.CodeABArm},
		{0, ledger.Drop, reason.CodeABRunning},
	} {
		a := r.acting(c.n, c.verb, ledger.Args{Now: true, DryRun: true})
		if a.Code != job.ExitConflict || a.Reason.Code != c.why || a.Next != "kappactl ab stop orders" {
			t.Errorf("%s v%d: exit %d, %s, next: %s", c.verb, c.n, a.Code, a.Text(), a.Next)
		}
	}
	if a := r.acting(4, ledger.Abort, ledger.Args{DryRun: true}); a.Code != job.ExitOK {
		t.Errorf("a version that is no arm cannot be aborted: exit %d, %s", a.Code, a.Text())
	}
	r.ok(ledger.ABStop, ledger.Args{})
	if a := r.acting(2, ledger.Abort, ledger.Args{DryRun: true}); a.Code != job.ExitOK {
		t.Errorf("after the end v2 cannot be aborted: exit %d, %s", a.Code, a.Text())
	}
}

func TestAFlipEndsTheExperiment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	flip := func(to int, back bool) error {
		return r.pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
			return Store{}.EndByFlip(t.Context(), tx, r.ref(to), back, "ann")
		})
	}
	if err := flip(2, false); err != nil {
		t.Errorf("without an experiment: %v", err)
	}
	r.ok(ledger.ABStart, arms(.5, .5))
	if a, refused := ledger.AnswerOf(flip(3, false)); !refused || a.Code != job.ExitConflict || a.Reason.Code != reason.CodeABNoArm {
		t.Errorf("a promote to v3, which is no arm: %+v", a)
	}
	if err := flip(2, false); err != nil {
		t.Fatal(err)
	}
	r.show(2)
	if got := r.reads(r.connect(), "orders"); got != "2" {
		t.Errorf("after the promote readers read v%s", got)
	}
	s := r.status()
	if s.State != Ended || s.ReasonCode != reason.CodeABEndedByFlip || s.EndedAt == nil {
		t.Errorf("%+v", s)
	}
	if left := r.left(); left != 0 {
		t.Errorf("%d helpers are left", left)
	}
	r.exec(`UPDATE kappactl.version SET phase = CASE number WHEN 2 THEN 'live' WHEN 1 THEN 'standby' ELSE phase END`)
	r.ok(ledger.ABStart, ledger.Args{Weights: []job.ArmWeight{{Version: 2, Weight: .5}, {Version: 3, Weight: .5}}})
	if err := flip(1, true); err != nil {
		t.Errorf("a rollback to v1, which is no arm: %v", err)
	}
}

// left counts what an experiment made beside the view.
func (r *rig) left() (n int) {
	r.t.Helper()
	err := r.pool.QueryRow(r.t.Context(), `SELECT (SELECT count(*) FROM pg_class WHERE relname = 'orders__arms') +
		(SELECT count(*) FROM pg_proc WHERE proname = 'orders_for')`).Scan(&n)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// What people built on the helpers stays when an experiment ends: it shows the live version, and follows the next
// flips.
func TestHelpersThatAreInUseStayAndFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(ledger.ABStart, arms(.5, .5))
	r.exec(`CREATE VIEW mine AS SELECT * FROM orders__arms`)
	r.ok(ledger.ABStop, ledger.Args{})
	c := r.connect()
	if got := r.reads(c, "mine") + r.reads(c, "orders_for('u1')"); got != "11" || r.left() != 2 {
		t.Errorf("they show v%s; %d are left", got, r.left())
	}
	r.show(2)
	if got := r.reads(c, "mine") + r.reads(c, "orders_for('u1')") + r.reads(c, "orders"); got != "222" {
		t.Errorf("after a flip they show v%s", got)
	}
	names, err := serving.New(serving.Config{}).Dependants(t.Context(), r.pool, job.Version{Ref: r.ref(1), Schema: "public", Layout: ordersLayout()}, r.view)
	if err != nil || len(names) > 0 {
		t.Errorf("v1 has dependants: %v, %v", names, err)
	}
	if names, err = serving.New(serving.Config{}).Readers(t.Context(), r.pool, r.view); err != nil || len(names) > 0 {
		t.Errorf("the view has readers: %v, %v", names, err)
	}
	r.exec(`UPDATE kappactl.version SET phase = CASE number WHEN 2 THEN 'live' WHEN 1 THEN 'standby' ELSE phase END`)
	r.ok(ledger.ABStart, ledger.Args{Weights: []job.ArmWeight{{Version: 2, Weight: .5}, {Version: 3, Weight: .5}}})
	if got := r.reads(c, "mine"); got != "2,3" {
		t.Errorf("in the next run they show %s", got)
	}
	r.exec(`DROP VIEW mine`)
	r.ok(ledger.ABStop, ledger.Args{})
	if r.left() != 0 {
		t.Errorf("%d helpers are left", r.left())
	}
}

// A reader that keeps the view locked is named when the tries are over, and nothing has changed.
func TestAnExperimentThatReadersKeepOutGivesUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run.config.Deadline = 50 * time.Millisecond
	c := r.connect()
	if _, err := c.Exec(t.Context(), `BEGIN; SELECT 1 FROM orders LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	a := r.ask(ledger.ABStart, arms(.5, .5))
	if a.Code != job.ExitTimeout || !strings.Contains(a.Text(), "pid ") {
		t.Errorf("exit %d, %s", a.Code, a.Text())
	}
	if _, err := c.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	r.refused(ledger.ABStop, ledger.Args{}, job.ExitConflict, reason.CodeABNone)
	r.ok(ledger.ABStart, arms(.5, .5))
}
