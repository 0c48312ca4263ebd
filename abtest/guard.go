package abtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// queryTimeout bounds the queries of rewards and guardrails.
const queryTimeout = 30 * time.Second

// alphaOfGuard is how often a guardrail between equal arms may be breached, over all looks together.
const alphaOfGuard = 0.05

// reading is what the query of a guardrail returned for one arm.
type reading struct {
	Arm      string
	N        float64
	Value    float64
	Variance *float64
}

func (r reading) usable(minN int) bool {
	bad := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	return r.N >= float64(minN) && !bad(r.N) && !bad(r.Value) &&
		(r.Variance == nil || !bad(*r.Variance) && *r.Variance >= 0)
}

// ofMean is the variance of the value: without one it is a rate.
func (r reading) ofMean() float64 {
	if r.Variance != nil {
		return *r.Variance / r.N
	}
	return max(0, r.Value*(1-r.Value)) / r.N
}

// The states of a guardrail at its last look.
const (
	guardPass   = "pass"
	guardFail   = "fail"
	guardNoData = "no_data"
	guardError  = "error"
)

// judged looks at the readings of a guardrail. Arms are those of the run, the control first.
func judged(g job.Guardrail, arms []string, found []reading) (string, reason.Reason) {
	by := map[string]reading{}
	for _, r := range found {
		if r.usable(g.MinN) {
			by[r.Arm] = r
		}
	}
	control, known := by[arms[0]]
	seen := false
	for _, arm := range arms[1:] {
		r, ok := by[arm]
		if !ok || g.Kind != job.Threshold && !known {
			continue
		}
		seen = true
		if g.Kind == job.Threshold {
			if g.Direction == job.Down && r.Value > *g.Limit || g.Direction == job.Up && r.Value < *g.Limit {
				return guardFail, reason.ABGuardValue(arm, r.Value, *g.Limit)
			}
			continue
		}
		if worse, margin := worse(g, control, r); worse > margin {
			return guardFail, reason.ABGuardValue(arm, worse, margin)
		}
	}
	if !seen {
		return guardNoData, reason.ABGuardNoData()
	}
	return guardPass, reason.Reason{}
}

// worse is by how much an arm is worse than the control at least: the bound of its confidence sequence. margin is what
// is borne.
func worse(g job.Guardrail, control, arm reading) (bound, margin float64) {
	d := arm.Value - control.Value
	if g.Direction == job.Up {
		d = -d
	}
	if margin = g.Margin; g.Kind == job.Relative {
		margin *= math.Abs(control.Value)
	}
	half := policy.Always(control.N+arm.N, 2*float64(g.MinN), alphaOfGuard) * math.Sqrt(control.ofMean()+arm.ofMean())
	return d - half, margin
}

// guardRow is a row of kappactl.guardrail.
type guardRow struct {
	Name     string
	State    string
	Breached bool
	Failures int
	Errors   int
	NoData   int
	Reason   reason.Reason
	SeenAt   *time.Time
}

// guard runs the guardrails that are due and notes what they came to.
func (w *watch) guard(ctx context.Context, e *row) error {
	rows, err := guardRows(ctx, w.r.Pool, e)
	if err != nil {
		return err
	}
	now, err := w.r.clock(ctx, w.r.Pool)
	if err != nil {
		return err
	}
	for _, g := range e.Settings.Guardrails {
		at := slices.IndexFunc(rows, func(r guardRow) bool { return r.Name == g.Name })
		r := guardRow{Name: g.Name}
		if at >= 0 {
			r = rows[at]
		}
		if r.SeenAt != nil && now.Sub(*r.SeenAt) < g.Every {
			continue
		}
		found, err := w.readings(ctx, e, g)
		switch {
		case ctx.Err() != nil || pg.Unreachable(err):
			return err
		case err != nil:
			r.State, r.Reason = guardError, reason.ABGuardFailed(checks.Why(err))
		default:
			r.State, r.Reason = judged(g, e.Arms, found)
		}
		r.count(g)
		r.SeenAt = &now
		if err := w.keepGuard(ctx, e, r); err != nil {
			return err
		}
	}
	return nil
}

// count counts what the last look came to. A breach stays.
func (r *guardRow) count(g job.Guardrail) {
	errors, noData := r.Errors+1, r.NoData+1
	r.Errors, r.NoData = 0, 0
	switch r.State {
	case guardError:
		r.Errors = errors
	case guardNoData:
		r.NoData = noData
	case guardFail:
		r.Failures++
		r.Breached = r.Breached || r.Failures > g.FailureLimit
	}
}

// readings runs the query of a guardrail.
func (w *watch) readings(ctx context.Context, e *row, g job.Guardrail) ([]reading, error) {
	var out []reading
	var r reading
	q := w.query(e, g.SQL, e.StartedAt)
	q.Select = `q.arm::text, q.n::double precision, q.value::double precision, (to_jsonb(q) ->> 'variance')::double precision`
	q.Columns = "arm text, n double precision, value double precision, variance double precision"
	var n, value *float64
	var arm *string
	err := checks.Ask(ctx, w.r.Pool, q, []any{&arm, &n, &value, &r.Variance}, func() error {
		if arm != nil && n != nil && value != nil {
			r.Arm, r.N, r.Value = *arm, *n, *value
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// query is SQL of the newest arm's job file. $1 in it is a time.
func (w *watch) query(e *row, sql string, since time.Time) checks.Query {
	ref := job.Ref{Job: job.Name(e.Job)}
	for _, arm := range e.Arms {
		if n, err := job.ParseNumber(arm); err == nil {
			ref.Number = max(ref.Number, n)
		}
	}
	return checks.Query{Ref: ref, Role: w.r.config.ChecksRole, Timeout: queryTimeout, SQL: withTime(sql, since)}
}

func (w *watch) keepGuard(ctx context.Context, e *row, r guardRow) error {
	_, err := w.r.Pool.Exec(ctx, `INSERT INTO kappactl.guardrail (job, run, name, state, breached, failures, errors, no_data, reason, seen_at)
		SELECT @job, @run, @name, @state, @breached, @failures, @errors, @no_data, @why, @at
		WHERE EXISTS (SELECT 1 FROM kappactl.experiment WHERE id = @id AND claim = @claim AND ended_at IS NULL)
		ON CONFLICT (job, run, name) DO UPDATE SET state = @state, breached = guardrail.breached OR @breached, failures = @failures,
			errors = @errors, no_data = @no_data, reason = CASE WHEN guardrail.breached THEN guardrail.reason ELSE @why END, seen_at = @at`,
		pgx.NamedArgs{
			"job": e.Job, "run": e.Run, "name": r.Name, "state": r.State, "breached": r.Breached, "failures": r.Failures,
			"errors":  r.Errors,
			"no_data": r.NoData, "why": r.Reason, "at": *r.SeenAt, "id": w.id, "claim": w.claim,
		})
	return ledger.Wrap(err, "note guardrail %s of %s", r.Name, e.Job)
}

func guardRows(ctx context.Context, db pg.DB, e *row) ([]guardRow, error) {
	rows, err := pg.Structs[guardRow](ctx, db, `SELECT name, state, breached, failures, errors, no_data, reason, seen_at FROM kappactl.guardrail
		WHERE job = @job AND run = @run`, pgx.NamedArgs{"job": e.Job, "run": e.Run})
	if err != nil {
		return nil, fmt.Errorf("read the guardrails of %s: %w", e.Job, err)
	}
	return rows, nil
}

// readGuards are the states of the guardrails, in the order of the job file.
func readGuards(ctx context.Context, db pg.DB, e *row) ([]judge.Guard, error) {
	if len(e.Settings.Guardrails) == 0 {
		return nil, nil
	}
	rows, err := guardRows(ctx, db, e)
	if err != nil {
		return nil, err
	}
	var out []judge.Guard
	for _, g := range e.Settings.Guardrails {
		for _, r := range rows {
			if r.Name == g.Name {
				out = append(out, judge.Guard{
					Name: g.Name, Action: g.Action, Breached: r.Breached, Reason: r.Reason,
					Blind: r.Errors > g.ErrorLimit || r.NoData > g.NoDataLimit,
				})
			}
		}
	}
	return out, nil
}
