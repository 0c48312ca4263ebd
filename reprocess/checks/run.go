package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Views builds the SELECT of a serving view; serving.Store implements it.
type Views interface {
	Select(v job.Version) string
}

// Runner runs the checks of versions.
type Runner struct {
	Pool       *pg.Pool
	Barrier    Barrier
	Positions  Positions
	Views      Views
	Role       string                   // PostgreSQL role that runs checks; empty: the session's own
	Holder     func(ref job.Ref) string // returns a unique name for a barrier
	RetryEvery time.Duration            // pause between two tries of a barrier
	Now        func() time.Time
}

// Run is one run of checks at one snapshot.
type Run struct {
	Runner
	Candidate job.Version
	Stage     string // job.CheckBefore or job.CheckAfter
	Due       []job.Check
	With      Counterpart
	Patience  time.Duration // how long to wait until both versions reach the same offsets
	Names     [2]string     // of the counterpart and the candidate in comparisons; empty: their versions

	refused map[string]string // by check name: the object that it must not use

	Results []Result         // one for each check that was due
	Offsets map[string]int64 // at which they ran, by topic/partition
}

// errDone rolls the checks' transaction back: nothing in it is kept.
var errDone = errors.New("done")

// slack is how long after its timeout a check may still be without an answer.
const slack = 10 * time.Second

// Do runs the checks. Whatever stops a check is its answer; an error means that another run may succeed.
func (r *Run) Do(ctx context.Context) error {
	by, err := r.meet(ctx)
	if err != nil {
		return err
	}
	if by != "" {
		defer r.Barrier.Release(ctx, by)
	}
	err = r.Pool.Snapshot(ctx, func(tx *pg.Tx) error { return r.in(ctx, tx, by) })
	switch {
	case errors.Is(err, errDone):
		return nil
	case ctx.Err() != nil, isMissed(err), pg.Unreachable(err) && !errors.Is(err, errCutOff):
		return err
	}
	r.unrun(err)
	return nil
}

// in runs the checks in a transaction and returns errDone when all have an answer.
func (r *Run) in(ctx context.Context, tx *pg.Tx, by string) error {
	// A table may be locked for long, for example by VACUUM FULL. This statement takes no snapshot.
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", slack.Milliseconds())); err != nil {
		return err
	}
	if err := r.snapshot(ctx, tx, by); err != nil {
		return err
	}
	for _, k := range r.Due {
		if err := r.one(ctx, tx, k); err != nil {
			return err
		}
	}
	if err := leaveNothing(ctx, tx); err != nil {
		return err
	}
	return errDone
}

// unrun sets the reason for the checks that did not run.
func (r *Run) unrun(err error) {
	why := reason.CheckError(err.Error())
	var known noAnswer
	switch {
	case errors.As(err, &known):
		why = known.why
	case errors.Is(err, errCutOff) && len(r.Results) > 0:
		why = reason.CheckNotRun(r.Results[len(r.Results)-1].Name)
	}
	for _, k := range r.Due[len(r.Results):] {
		r.Results = append(r.Results, Result{Name: k.Name, Outcome: NoAnswer, Detail: why})
	}
}

// meet brings both versions to the same offsets if a check needs both, and returns the barrier's holder.
func (r *Run) meet(ctx context.Context) (by string, err error) {
	if r.With.Version == nil || r.With.Version.Adopted() || r.With.Still != nil || !r.needsBoth() {
		return "", nil // an adopted relation has no offsets to hold
	}
	began := r.Now()
	for {
		by = r.Holder(r.Candidate.Ref)
		err = r.Barrier.Stop(ctx, by, r.Candidate.Ref, r.With.Version.Ref)
		if err == nil {
			return by, nil
		}
		r.Barrier.Release(ctx, by)
		var missed *Missed
		switch {
		case !errors.As(err, &missed):
			return "", err
		case r.Now().Sub(began) >= r.Patience:
			r.With = r.With.Without(NoAnswer, missed.Reason)
			return "", nil
		}
		wait := time.NewTimer(r.RetryEvery)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return "", ctx.Err()
		}
	}
}

func (r *Run) needsBoth() bool {
	for _, k := range r.Due {
		if k.Diff != nil || job.Names(k.SQL, r.With.Name) {
			return true
		}
	}
	return false
}

// snapshot takes the snapshot, releases the barrier and creates the views that the checks read. After that the
// transaction is read-only.
func (r *Run) snapshot(ctx context.Context, tx *pg.Tx, by string) error {
	if by != "" {
		// The first statement takes the snapshot and reads whether the barrier was in place in it.
		there, err := r.Positions.Reached(ctx, tx, by, false)
		if err != nil {
			return err
		}
		if !there {
			return &Missed{Reason: reason.BarrierExpired()}
		}
	}
	if r.With.Still == nil { // else the caller knows them
		positions, err := r.Positions.Positions(ctx, tx, r.Candidate.Ref)
		if err != nil {
			return err
		}
		r.Offsets = offsetsOf(positions)
	}
	if by != "" {
		r.Barrier.Release(ctx, by)
	}
	if err := r.createViews(ctx, tx); err != nil {
		return err
	}
	if err := r.confine(ctx, tx); err != nil {
		return err
	}
	if err := r.fence(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `SET TRANSACTION READ ONLY`); err != nil {
		return fmt.Errorf("make the checks read-only: %w", err)
	}
	return nil
}

// The views of diff checks: rows with the columns that identify them.
const (
	keyedCandidate = "kappactl_candidate"
	keyedOther     = "kappactl_other"
)

// createViews creates the temporary views that checks read and grants them to the checks role.
func (r *Run) createViews(ctx context.Context, tx *pg.Tx) error {
	for name, text := range r.selects() {
		if err := pg.One(ctx, tx.Raw(), fmt.Sprintf("CREATE TEMPORARY VIEW %s AS\n%s", name, text)); err != nil {
			return fmt.Errorf("create the views that checks read: %w", err)
		}
		if r.Role == "" {
			continue
		}
		if _, err := tx.Raw().Exec(ctx, fmt.Sprintf("GRANT SELECT ON %s TO %s", name, pg.Ident(r.Role))); err != nil {
			return fmt.Errorf("grant the views of checks to role %s: %w", r.Role, err)
		}
	}
	return nil
}

// selects returns the views' definitions by name.
func (r *Run) selects() map[string]string {
	if r.Views == nil { // a Query has none
		return nil
	}
	out := map[string]string{
		"candidate":    r.Views.Select(r.Candidate),
		keyedCandidate: r.Views.Select(r.Candidate.Audited()),
	}
	if r.Stage == job.CheckAfter {
		out["live"] = out["candidate"]
	}
	if other := r.With.Version; other != nil {
		views := r.Views
		if r.With.Still != nil {
			views = r.With.Still
		}
		out[r.With.Name], out[keyedOther] = views.Select(*other), views.Select(other.Audited())
	}
	return out
}

// one runs one check in a savepoint, as the checks role. An error of the check is its answer; a returned error ends the
// run.
func (r *Run) one(ctx context.Context, tx *pg.Tx, k job.Check) error {
	began := r.Now()
	result := Result{Name: k.Name}
	if k.Diff != nil && r.With.Version == nil {
		result.Outcome, result.Detail, result.missing = r.With.Outcome, r.With.Missing, true
		r.Results = append(r.Results, result)
		return nil
	}
	if why := r.refused[k.Name]; why != "" {
		result.Outcome, result.Detail = NoAnswer, reason.CheckError(why)
		r.Results = append(r.Results, result)
		return nil
	}
	if k.Timeout <= 0 {
		k.Timeout = job.DefaultCheckTimeout
	}
	limited, cancel := context.WithTimeout(ctx, k.Timeout+slack)
	defer cancel()
	save, err := tx.Raw().Begin(limited)
	if err != nil {
		return fmt.Errorf("check %q: %w", k.Name, err)
	}
	err = r.answer(limited, save, k, &result)
	result.Seconds = r.Now().Sub(began).Seconds()
	if err != nil {
		r.unanswered(k, err, &result)
	}
	switch back := save.Rollback(limited); {
	case ctx.Err() != nil:
		return ctx.Err()
	case tx.Raw().Conn().IsClosed() || back != nil:
		result.Outcome, result.Detail = NoAnswer, reason.CheckCutOff()
		err = errCutOff
	default:
		err = nil
	}
	r.Results = append(r.Results, result)
	return err
}

// answer runs the check's SQL or its comparison.
func (r *Run) answer(ctx context.Context, tx pgx.Tx, k job.Check, out *Result) (err error) {
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", k.Timeout.Milliseconds())); err != nil {
		return err
	}
	if err := takeRole(ctx, tx, r.Role); err != nil {
		return err
	}
	if k.Diff == nil {
		out.Outcome, out.Detail, err = runSQL(ctx, tx, k.SQL)
		return err
	}
	with := r.With.Version
	d := Diff{
		Job: r.Candidate.Job, A: cmp.Or(r.Names[0], with.Number.String()), B: cmp.Or(r.Names[1], r.Candidate.Number.String()),
		Examples: []Example{}, Offsets: r.Offsets,
	}
	other, mine := side{with.Layout, "TABLE " + keyedOther}, side{r.Candidate.Layout, "TABLE " + keyedCandidate}
	if err := compare(ctx, tx, fenced(tx), other, mine, k.Diff.DiffHow, &d); err != nil {
		return err
	}
	out.Diff = &d
	out.Outcome, out.Detail = judge(d, *k.Diff)
	return nil
}

// Stopping returns the results that stop a flip.
func (r *Run) Stopping() []Result {
	var out []Result
	for _, k := range r.Results {
		accepted := r.With.Accepted && k.Outcome == NoAnswer && k.missing
		if k.Outcome != Pass && !accepted {
			out = append(out, k)
		}
	}
	return out
}
