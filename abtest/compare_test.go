package abtest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

const clicks = `SELECT id AS event_id, subject, value, ts FROM public.clicks WHERE ts >= $1`

// trial is an experiment under a clock of its own, whose rewards are rows of a table.
type trial struct {
	*rig
	now  time.Time
	seed int
	n    int // subjects so far
}

// tried are settings that decide at once.
func tried(mode job.ABMode) job.Experiment {
	e := job.Experiment{
		Mode:   mode,
		Reward: &job.Reward{Kind: job.Bernoulli, Direction: job.Up, Source: job.RewardSource{SQL: clicks, Every: time.Second}, Window: time.Second},
	}
	d, b := job.DefaultDecide(), job.DefaultBandit()
	d.MDE, d.MinRuntime, d.MinSubjects = .05, 0, 100
	b.ExploreFor, b.ExploreMin, b.EpochMin = 0, 20, 2
	e.Decide = &d
	if mode == job.ABBandit {
		e.Policy = &b
	}
	return e
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	x := &trial{rig: newRig(t)}
	x.run.clock = func(context.Context, pg.DB) (time.Time, error) { return x.now, nil }
	x.exec(`CREATE TABLE public.clicks (id bigint GENERATED ALWAYS AS IDENTITY, subject text, value float, ts timestamptz)`)
	return x
}

func (x *trial) begins(e job.Experiment) {
	x.t.Helper()
	x.rewarded(e)
	x.now = time.Now()
}

// comes exposes subjects, of which some click, as often as rate says for their arm, and looks a minute later.
func (x *trial) comes(subjects int, control, arm float64) {
	x.t.Helper()
	x.now = x.now.Add(time.Minute)
	at := x.now.Add(-30 * time.Second)
	x.exec(`SELECT kappactl.expose('orders', 's' || i) FROM generate_series($1::int, $2::int) i`, x.n, x.n+subjects-1)
	x.exec(`UPDATE kappactl.assignment SET exposed_at = $1 WHERE run = (SELECT run FROM kappactl.route) AND substr(subject, 2)::int BETWEEN $2 AND $3`,
		at, x.n, x.n+subjects-1)
	x.exec(`INSERT INTO public.clicks (subject, value, ts) SELECT subject, 1, $1 FROM kappactl.assignment
		WHERE run = (SELECT run FROM kappactl.route) AND substr(subject, 2)::int BETWEEN $2 AND $3
		AND ('x' || substr(md5($4::text || subject), 1, 8))::bit(32)::bigint / 4294967296.0 < CASE arm WHEN 'v1' THEN $5::float ELSE $6::float END`,
		at.Add(time.Millisecond), x.n, x.n+subjects-1, fmt.Sprint(x.seed), control, arm)
	x.n += subjects
	x.looks()
}

// looks does one look, and what the run has asked for.
func (x *trial) looks() {
	x.t.Helper()
	e, err := newest(x.t.Context(), x.pool, "orders")
	if err != nil || e == nil {
		x.t.Fatal(err)
	}
	w := &watch{r: x.run, id: e.ID, since: map[string]time.Time{}}
	if e.EndedAt != nil {
		return
	}
	if err := w.compare(x.t.Context(), e); err != nil {
		x.t.Fatal(err)
	}
	ids, err := pg.Collect(x.t.Context(), x.pool, pgx.RowTo[int64], `SELECT id FROM kappactl.request WHERE answered_at IS NULL AND verb LIKE 'ab%'`)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, id := range ids {
		if err := x.run.Answer(x.t.Context(), id, 0); err != nil {
			x.t.Fatal(err)
		}
	}
}

// replays decides every decision of a look again, from its row.
func (x *trial) replays() {
	x.t.Helper()
	type past struct {
		Verdict  Verdict
		Weights  []int
		Inputs   judge.Inputs
		Settings job.Experiment
	}
	found, err := pg.Structs[past](x.t.Context(), x.pool, `SELECT d.verdict, d.weights, d.inputs, e.settings FROM kappactl.decision d
		JOIN kappactl.experiment e USING (job, run) WHERE d.inputs <> '{}'`, nil)
	if err != nil || len(found) == 0 {
		x.t.Fatal(len(found), err)
	}
	for _, d := range found {
		if out := judge.Judge(d.Settings, d.Inputs); Verdict(out.Verdict) != d.Verdict || fmt.Sprint(out.Weights) != fmt.Sprint(d.Weights) {
			text, _ := json.Marshal(d.Inputs)
			x.t.Errorf("%s %v is %s %v when it is decided again: %s", d.Verdict, d.Weights, out.Verdict, out.Weights, text)
		}
	}
}

// A bandit over real assignments and rewards sends the better version more than half of the subjects, in 19 of 20 seeded runs.
func TestABanditFindsTheBetterVersion(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	better := 0
	for x.seed = range 20 {
		e := tried(job.ABBandit)
		e.Decide.MinSubjects = 1_000_000
		x.begins(e)
		for range 5 {
			x.comes(200, .1, .4)
		}
		s := x.status()
		if share := float64(s.Arms[1].Subjects) / float64(s.Arms[0].Subjects+s.Arms[1].Subjects); share > .5 {
			better++
		}
		x.ok(ledger.ABStop, ledger.Args{})
	}
	if better < 19 {
		t.Errorf("in %d of 20 runs the better version got more than half of the subjects", better)
	}
	x.replays()
}

func TestAWinnerIsPromotedByAnOrdinaryRequest(t *testing.T) {
	t.Parallel()
	for _, mode := range []job.PromoteMode{job.PromoteManual, job.PromoteAuto} {
		x := newTrial(t)
		e := tried(job.ABTest)
		e.Promote, e.NoGuardrails = mode, true
		x.begins(e)
		for range 3 {
			x.comes(600, .1, .4)
		}
		asked, err := pg.Collect(t.Context(), x.pool, pgx.RowTo[int], `SELECT number FROM kappactl.request WHERE verb = 'promote'`)
		if err != nil {
			t.Fatal(err)
		}
		decided, err := Store{}.Decisions(t.Context(), x.pool, "orders")
		if err != nil {
			t.Fatal(err)
		}
		wins := 0
		for _, d := range decided {
			if d.Verdict == Verdict(judge.Win) {
				wins++
			}
		}
		auto := mode == job.PromoteAuto
		if wins != 1 || auto != (len(asked) == 1 && asked[0] == 2) || x.status().State != Running {
			t.Errorf("%s: %d wins, promotes of %v", mode, wins, asked)
		}
		if auto {
			x.exec(`UPDATE kappactl.request SET exit_code = 6, answered_at = now(), answer = $1 WHERE verb = 'promote'`, reason.ABGuardNoData())
			x.looks()
			if d, _ := (Store{}).Decisions(t.Context(), x.pool, "orders"); d[0].Verdict != Verdict(judge.Freeze) || d[0].MessageCode != reason.CodeABPromoteRefused {
				t.Errorf("after a refused promote: %+v", d[0])
			}
		}
		x.replays()
	}
}

func TestARampBeginsWithItsFirstStep(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.exec(`UPDATE kappactl.version SET phase = 'failed' WHERE number = 3`)
	e := job.Experiment{Coverage: 1, Assign: job.AssignSticky, Mode: job.ABRamp, Ramp: []job.RampStep{{Weight: .05, Hold: time.Hour}, {Weight: .5, Hold: time.Hour}}}
	x.exec(`UPDATE kappactl.version SET spec = jsonb_set(spec, '{experiment}', $1::jsonb) WHERE number = 2`, document{e})
	x.refused(ledger.ABStart, ledger.Args{Assign: job.AssignHash}, job.ExitUsage, reason.CodeABNeedsSticky)
	x.ok(ledger.ABStart, ledger.Args{})
	for after, want := range map[time.Duration]float64{0: .05, 61 * time.Minute: .5} {
		x.now = time.Now().Add(after)
		if x.looks(); after > 0 || x.status().Epoch == 1 {
			if got := x.status().Arms[1].Weight; got != want {
				t.Errorf("after %s v2 has %v", after, got)
			}
		}
	}
	x.now = time.Now().Add(121 * time.Minute)
	x.looks()
	if d, _ := (Store{}).Decisions(t.Context(), x.pool, "orders"); d[0].Verdict != Verdict(judge.Win) {
		t.Errorf("%+v", d[0])
	}
	x.replays()
}

// Subjects that have read two arms are not compared; many of them pause the run.
func TestSubjectsThatReadTwoArms(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.begins(tried(job.ABTest))
	x.comes(200, .1, .1)
	c := x.connect()
	for _, sql := range []string{`SET kappactl.pin_orders = 'v1'`, `SELECT kappactl.expose('orders', 's' || i) FROM generate_series(0, 199) i`} {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	crossed := x.count(`SELECT count(*) FROM kappactl.assignment WHERE crossed`)
	if n := x.count(`SELECT count(*) FROM kappactl.assignment WHERE crossed AND arm = 'v2'`); n != crossed || n < 70 {
		t.Errorf("%d of %d crossed subjects are of v2", n, crossed)
	}
	x.now = x.now.Add(time.Minute)
	x.looks()
	if s := x.status(); s.State != Paused || s.Comparison.Estimates.Arms[1].Subjects != 0 {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
	x.ok(ledger.ABResume, ledger.Args{Accept: "a client was pinned"})
	x.looks()
	if s := x.status(); s.State != Running {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
	x.replays()
}

func TestHarmEndsTheRun(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.begins(tried(job.ABTest))
	for range 3 {
		x.comes(600, .4, .1)
	}
	if s := x.status(); s.State != Ended || s.ReasonCode != reason.CodeABRolledBack {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
	if got := x.reads(x.connect(), "public.orders"); got != "1" {
		t.Errorf("readers read version %s", got)
	}
	x.replays()
}

// A breach sends readers to the control and ends the run; what cannot be judged pauses it.
func TestGuardrailsActByThemselves(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.exec(`CREATE TABLE public.errors (arm text, n float, value float)`)
	guard := job.Guardrail{
		Name: "errors", Kind: job.NonInferiority, Direction: job.Down, Margin: .0005, MinN: 2500, Every: time.Second, Action: job.GuardRollback,
		ErrorLimit: 1, NoDataLimit: 1, SQL: `SELECT * FROM public.errors`,
	}
	e := job.Experiment{Guardrails: []job.Guardrail{guard}}
	x.begins(e)
	look := func() Status {
		x.now = x.now.Add(time.Minute)
		x.looks()
		return x.status()
	}
	x.exec(`INSERT INTO public.errors VALUES ('v1', 10000, 0.005), ('v2', 10000, 0.009)`)
	for range 3 {
		if s := look(); s.State != Running {
			t.Fatalf("vector 15 without a breach: %s", s.Reason)
		}
	}
	x.exec(`UPDATE public.errors SET value = 0.01 WHERE arm = 'v2'`)
	if s := look(); s.State != Ended || s.ReasonCode != reason.CodeABRolledBack {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
	for name, sql := range map[string]string{
		"an error": `SELECT 'v2' AS arm, 1 AS n, 1 / (SELECT count(*) - count(*) FROM public.errors) AS value`,
		"no data":  `SELECT arm, n, 'NaN'::float AS value FROM public.errors`,
		"too few":  `SELECT arm, 5 AS n, value FROM public.errors`,
		"a write":  `WITH w AS (DELETE FROM public.errors RETURNING *) SELECT * FROM w`,
	} {
		e.Guardrails[0].SQL = sql
		x.begins(e)
		if s := look(); s.State != Running {
			t.Errorf("%s pauses at once: %s", name, s.Reason)
		}
		if s := look(); s.State != Paused {
			t.Errorf("%s: %s, %s", name, s.State, s.Reason)
		}
		x.ok(ledger.ABResume, ledger.Args{Accept: "known"})
		if s := look(); s.State != Running {
			t.Errorf("%s was accepted and pauses again: %s", name, s.Reason)
		}
		x.ok(ledger.ABStop, ledger.Args{})
	}
	x.replays()
}

// Rewards that cannot be read freeze the weights until they can.
func TestAMissingSourceFreezesTheWeights(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	x.begins(tried(job.ABBandit))
	x.comes(200, .1, .3)
	x.exec(`ALTER TABLE public.clicks RENAME TO gone`)
	x.now = x.now.Add(time.Minute)
	x.looks()
	if d, _ := (Store{}).Decisions(t.Context(), x.pool, "orders"); d[0].MessageCode != reason.CodeABSource {
		t.Errorf("%+v", d[0])
	}
	x.exec(`ALTER TABLE public.gone RENAME TO clicks`)
	x.comes(200, .1, .3)
	if d, _ := (Store{}).Decisions(t.Context(), x.pool, "orders"); d[0].MessageCode != reason.CodeABWeights {
		t.Errorf("%+v", d[0])
	}
	x.replays()
}
