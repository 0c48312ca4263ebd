package reprocess

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// The times at which a check runs.
const (
	checkBefore = "before"
	checkAfter  = "after"
)

// CheckOutcome is what a check says.
type CheckOutcome string

// The outcomes of a check. Before the flip only pass lets it happen.
const (
	CheckPass     CheckOutcome = "pass"
	CheckFail     CheckOutcome = "fail"
	CheckNoAnswer CheckOutcome = "no answer"
)

// CheckResult is what one check said.
type CheckResult struct {
	Name    string       `json:"name"`
	Outcome CheckOutcome `json:"outcome"`
	Detail  string       `json:"detail,omitempty"`
}

// errDone rolls a check's transaction back: its views are not to stay.
var errDone = errors.New("done")

// check runs the checks that gate the flip, at one snapshot in which candidate and live stand at the same offsets.
func (c *Controller) check(ctx context.Context, st *state, when string, liveDown bool) ([]CheckResult, error) {
	var due []job.Check
	for _, k := range st.spec.Checks {
		if (k.When == "" || k.When != checkAfter) && when == checkBefore {
			if !liveDown || k.Diff == nil {
				due = append(due, k)
			}
		}
	}
	live := st.liveRef()
	if liveDown {
		live = nil
	}
	return c.runChecks(ctx, st, due, map[string]job.Ref{"candidate": st.ref()}, "live", live)
}

// checkLive runs checks after the flip: candidate and live are what readers see, previous what they saw before.
func (c *Controller) checkLive(ctx context.Context, st *state, due []job.Check) ([]CheckResult, error) {
	var previous *job.Ref
	if st.Previous != nil {
		ref := job.Ref{Job: job.Name(st.Job), Number: job.Number(*st.Previous)}
		if v, err := readVersion(ctx, c.Pool, ref); err != nil {
			return nil, err
		} else if v.Phase == job.Standby && !v.Paused {
			previous = &ref
		}
	}
	return c.runChecks(ctx, st, due, map[string]job.Ref{"candidate": st.ref(), "live": st.ref()}, "previous", previous)
}

// runChecks runs checks over temporary views; other, when there is one, is held at the offsets of st for the snapshot.
func (c *Controller) runChecks(ctx context.Context, st *state, due []job.Check, views map[string]job.Ref, otherName string, other *job.Ref) ([]CheckResult, error) {
	if len(due) == 0 {
		return nil, nil
	}
	by := c.holder(st.ref())
	if other != nil {
		if _, err := c.barrier(ctx, by, st.ref(), *other); err != nil {
			return nil, err
		}
		defer c.release(ctx, by)
		views[otherName] = *other
	}
	var results []CheckResult
	var positions []job.Position
	err := c.Pool.Snapshot(ctx, func(tx *pg.Tx) error {
		if other != nil {
			// The first statement takes the snapshot, and says whether the barrier stood in it.
			there, err := c.Positions.Reached(ctx, tx, by, false)
			if err != nil {
				return err
			}
			if !there {
				return &tryAgain{cause: "the barrier ended before the checks began"}
			}
		}
		var err error
		if positions, err = c.Positions.Positions(ctx, tx, st.ref()); err != nil {
			return err
		}
		c.release(ctx, by)
		if err := c.tempViews(ctx, tx, st, views); err != nil {
			return err
		}
		for _, k := range due {
			r, err := runCheck(ctx, tx, k, views)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
		return errDone
	})
	if !errors.Is(err, errDone) {
		return nil, err
	}
	return results, c.noteChecks(ctx, st, results, positions)
}

// tempViews makes the views that checks read and the transaction read-only after that.
func (c *Controller) tempViews(ctx context.Context, tx *pg.Tx, st *state, views map[string]job.Ref) error {
	for name, ref := range views {
		layout := st.layout
		if ref != st.ref() {
			var err error
			if _, layout, err = specOf(ctx, tx, ref); err != nil {
				return err
			}
		}
		sql := fmt.Sprintf("CREATE TEMPORARY VIEW %s AS\n%s", pg.Ident(name), c.Views.Select(ref, st.schema(), layout))
		if _, err := tx.Raw().Exec(ctx, sql); err != nil {
			return fmt.Errorf("view %s for the checks: %w", name, err)
		}
	}
	if _, err := tx.Exec(ctx, `SET TRANSACTION READ ONLY`); err != nil {
		return fmt.Errorf("make the checks read-only: %w", err)
	}
	return nil
}

// runCheck runs one check in a savepoint. Its own errors are no answer; an error returned means the connection is gone.
func runCheck(ctx context.Context, tx *pg.Tx, k job.Check, views map[string]job.Ref) (CheckResult, error) {
	r := CheckResult{Name: k.Name}
	text := k.SQL
	if k.Diff != nil {
		if _, ok := views["live"]; !ok {
			r.Outcome, r.Detail = CheckPass, "nothing is live to compare with"
			return r, nil
		}
	}
	save, err := tx.Raw().Begin(ctx)
	if err != nil {
		return r, fmt.Errorf("check %q: %w", k.Name, err)
	}
	timeout := k.Timeout
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	if _, err := save.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", timeout.Milliseconds())); err != nil {
		return r, fmt.Errorf("check %q: %w", k.Name, err)
	}
	if k.Diff != nil {
		r.Outcome, r.Detail, err = diffCheck(ctx, save, k.Diff)
	} else {
		r.Outcome, r.Detail, err = sqlCheck(ctx, save, text)
	}
	if err != nil {
		if ctx.Err() != nil || pg.Unreachable(err) {
			return r, fmt.Errorf("check %q: %w", k.Name, err)
		}
		r.Outcome, r.Detail = CheckNoAnswer, err.Error()
		if pg.Code(err) == "57014" {
			r.Detail = fmt.Sprintf("no answer within %s", timeout)
		}
	}
	if err := save.Rollback(ctx); err != nil {
		return r, fmt.Errorf("check %q: %w", k.Name, err)
	}
	return r, nil
}

// sqlCheck passes when its SQL returns one row with one true.
func sqlCheck(ctx context.Context, tx pgx.Tx, text string) (CheckOutcome, string, error) {
	rows, err := tx.Query(ctx, text)
	if err != nil {
		return "", "", err
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*bool, error) {
		if n := len(row.FieldDescriptions()); n != 1 {
			return nil, fmt.Errorf("it returned %d columns; a check returns one row with one boolean", n)
		}
		var ok *bool
		return ok, row.Scan(&ok)
	})
	switch {
	case err != nil:
		return "", "", err
	case len(got) != 1:
		return "", "", fmt.Errorf("it returned %d rows; a check returns one row with one boolean", len(got))
	case got[0] == nil:
		return CheckFail, "it returned NULL", nil
	case !*got[0]:
		return CheckFail, "it returned false", nil
	}
	return CheckPass, "", nil
}

// diffCheck compares whole rows of candidate and live: the share of rows that only one of them has.
func diffCheck(ctx context.Context, tx pgx.Tx, limit *job.DiffLimit) (CheckOutcome, string, error) {
	var only, all int64
	err := tx.QueryRow(ctx, `WITH c AS (SELECT to_jsonb(r)::text AS row FROM candidate r), l AS (SELECT to_jsonb(r)::text AS row FROM live r)
		SELECT greatest((SELECT count(*) FROM (SELECT row FROM c EXCEPT ALL SELECT row FROM l) x),
			(SELECT count(*) FROM (SELECT row FROM l EXCEPT ALL SELECT row FROM c) y)), (SELECT count(*) FROM l)`).Scan(&only, &all)
	if err != nil {
		return "", "", err
	}
	share := 0.0
	if only > 0 {
		share = float64(only) / float64(max(all, 1))
	}
	text := fmt.Sprintf("%d of %d rows differ (%.3g%%, allowed %.3g%%)", only, all, 100*share, 100*limit.MaxChanged)
	if share > limit.MaxChanged {
		return CheckFail, text, nil
	}
	return CheckPass, text, nil
}

// noteChecks writes what the checks said and at which positions.
func (c *Controller) noteChecks(ctx context.Context, st *state, results []CheckResult, positions []job.Position) error {
	at := make(map[string]int64, len(positions))
	for _, p := range positions {
		at[p.String()] = p.Next
	}
	bad := failed(results)
	e := st.entry("checks passed", "%d checks", len(results))
	if len(bad) > 0 {
		e = st.entry("checks failed", "%s", checkWords(bad))
	}
	e.Detail = map[string]any{"checks": results, "positions": at}
	return addEvent(ctx, c.Pool, e)
}

func failed(results []CheckResult) []CheckResult {
	var out []CheckResult
	for _, r := range results {
		if r.Outcome != CheckPass {
			out = append(out, r)
		}
	}
	return out
}

func checkWords(results []CheckResult) string {
	out := make([]string, len(results))
	for i, r := range results {
		out[i] = fmt.Sprintf("check %q: %s: %s", r.Name, r.Outcome, r.Detail)
	}
	return strings.Join(out, "\n")
}

func checksAnswer(ref job.Ref, bad []CheckResult) Answer {
	return Answer{
		Code: job.ExitChecks, Text: fmt.Sprintf("%s is not promoted:\n%s", ref, checkWords(bad)),
		Next: fmt.Sprintf("correct the cause, then kappactl promote %s %s, or kappactl abort %s %s", ref.Job, ref.Number, ref.Job, ref.Number),
	}
}
