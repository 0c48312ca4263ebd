package reprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// CheckOutcome is what a check says.
type CheckOutcome string

// The outcomes of a check. Before the flip only pass lets it happen; after it only fail, twice in a row, undoes it.
const (
	CheckPass     CheckOutcome = "pass"
	CheckFail     CheckOutcome = "fail"
	CheckNoAnswer CheckOutcome = "no answer"
)

// CheckResult is what one check said.
type CheckResult struct {
	Name    string       `json:"name"`
	Outcome CheckOutcome `json:"outcome"`
	Detail  string       `json:"detail,omitempty"` // why, or what was found
	Seconds float64      `json:"seconds"`
	Diff    *Diff        `json:"diff,omitempty"` // of a diff check: counts and examples; a is what the candidate is compared with
}

// noLive is why a check that compares passes for a job's first version.
const noLive = "no live version to compare with"

// liveIsDown is in the reason of a check that gives no answer because the live version does not move.
const liveIsDown = ", which is live, cannot be compared with: "

// counterpart is the version that checks compare the candidate with: live before the flip, previous after it.
type counterpart struct {
	name string
	ref  *job.Ref // nil: there is none to compare with, and instead is what a check that needs it says
	// instead has the outcome and the reason of checks that need the missing one.
	instead CheckResult
	// accepted says that a person knows that it is missing: no answer for that reason stops nothing.
	accepted bool
}

// liveOf is the version that readers see, unless it does not move.
func (c *Controller) liveOf(ctx context.Context, st *state, accepted bool) (counterpart, error) {
	with := counterpart{name: "live", instead: CheckResult{Outcome: CheckPass, Detail: noLive}}
	live := st.liveRef()
	if live == nil {
		return with, nil
	}
	down, why, err := c.down(ctx, live)
	if err != nil {
		return with, err
	}
	if down {
		with.instead = CheckResult{Outcome: CheckNoAnswer, Detail: live.Number.String() + liveIsDown + why}
		with.accepted = accepted
		return with, nil
	}
	with.ref = live
	return with, nil
}

// previousOf is the version that readers saw before, when it still follows.
func (c *Controller) previousOf(ctx context.Context, st *state) (counterpart, error) {
	with := counterpart{name: "previous"}
	missing := func(format string, args ...any) (counterpart, error) {
		with.instead = CheckResult{Outcome: CheckNoAnswer, Detail: fmt.Sprintf(format, args...)}
		return with, nil
	}
	if st.Previous == nil {
		return missing("no version was live before")
	}
	ref := job.Ref{Job: job.Name(st.Job), Number: job.Number(*st.Previous)}
	v, err := readState(ctx, c.Pool, ref)
	switch {
	case err != nil:
		return with, err
	case v.Phase != job.Standby:
		return missing("%s, which was live before, is %s", ref.Number, v.Phase)
	case v.PausedAt != nil:
		return missing("%s, which was live before, is paused", ref.Number)
	case v.StaleSince != nil || v.Verdict == job.Unhealthy:
		return missing("%s, which was live before, is unhealthy: %s", ref.Number, v.Reason)
	}
	with.ref = &ref
	return with, nil
}

// dueIn are the checks of a stage: job.CheckBefore or job.CheckAfter.
func dueIn(checks []job.Check, stage string) []job.Check {
	var due []job.Check
	for _, k := range checks {
		if k.Runs(stage) {
			due = append(due, k)
		}
	}
	return due
}

// checkBefore runs the checks that gate the flip, at one snapshot in which candidate and live stand at the same offsets, and
// returns those that stop it.
func (c *Controller) checkBefore(ctx context.Context, st *state, liveDown bool) (bad []CheckResult, err error) {
	due := dueIn(st.spec.Checks, job.CheckBefore)
	if len(due) == 0 {
		return nil, nil
	}
	with, err := c.liveOf(ctx, st, liveDown)
	if err != nil {
		return nil, err
	}
	r := &checkRun{c: c, st: st, stage: job.CheckBefore, due: due, with: with, patience: c.config.PromoteDeadline}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	bad = r.bad()
	e := st.entry("checks passed", "%s", passedWords(r.results))
	if len(bad) > 0 {
		e = st.entry("checks failed", "%s", checkWords(bad))
	}
	e.Detail = map[string]any{"checks": r.results, "positions": r.at}
	err = c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := writeResults(ctx, tx, r); err != nil {
			return err
		}
		return addEvent(ctx, tx, e)
	})
	return bad, err
}

// bad are the results that stop a flip.
func (r *checkRun) bad() []CheckResult {
	var out []CheckResult
	for _, k := range r.results {
		accepted := r.with.accepted && k.Outcome == CheckNoAnswer && k.Detail == r.with.instead.Detail
		if k.Outcome != CheckPass && !accepted {
			out = append(out, k)
		}
	}
	return out
}

// checkAfter runs checks after the flip: candidate and live are what readers see, previous what they saw before.
func (c *Controller) checkAfter(ctx context.Context, st *state, due []job.Check) (*checkRun, error) {
	with, err := c.previousOf(ctx, st)
	if err != nil {
		return nil, err
	}
	r := &checkRun{c: c, st: st, stage: job.CheckAfter, due: due, with: with, patience: c.config.HoldFor}
	return r, r.run(ctx)
}

// since is how long ago, in seconds.
func (c *Controller) since(began time.Time) float64 { return c.Now().Sub(began).Seconds() }
