package reprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// runner runs checks as the controller is configured.
func (c *Controller) runner() checks.Runner {
	return checks.Runner{
		Pool: c.Pool, Barrier: c.checksBarrier(), Positions: c.Speed, Views: c.Serving, Role: c.config.ChecksRole,
		Holder: c.holder, RetryEvery: c.config.RetryEvery, Now: c.Now,
	}
}

// comparable is another version of the job, as it is compared with the candidate.
func (c *Controller) comparable(ctx context.Context, st *ledger.State, ref job.Ref) (*job.Version, error) {
	_, layout, err := ledger.ReadSpec(ctx, c.Pool, ref)
	if err != nil {
		return nil, err
	}
	if ref.Adopted() {
		layout = layout.KeyedAs(st.Layout)
	}
	return &job.Version{Ref: ref, Schema: st.Schema(), Layout: layout}, nil
}

// liveOf is the version that readers see, unless it does not move.
func (c *Controller) liveOf(ctx context.Context, st *ledger.State, accepted bool) (checks.Counterpart, error) {
	with := checks.Counterpart{Name: "live"}
	live := st.LiveRef()
	if live == nil {
		return with.Without(checks.Pass, reason.NoLiveVersion()), nil
	}
	down, err := c.down(ctx, live)
	if err != nil {
		return with, err
	}
	if !down.IsZero() {
		with = with.Without(checks.NoAnswer, reason.LiveIsDown(live.Number, down))
		with.Accepted = accepted
		return with, nil
	}
	return c.atSameOffsets(ctx, st, with, *live)
}

// previousOf is the version that readers saw before, when it still follows its topics.
func (c *Controller) previousOf(ctx context.Context, st *ledger.State) (checks.Counterpart, error) {
	with := checks.Counterpart{Name: "previous"}
	if st.Previous == nil {
		return with.Without(checks.NoAnswer, reason.NoPrevious()), nil
	}
	ref := job.Ref{Job: job.Name(st.Job), Number: job.Number(*st.Previous)}
	v, err := ledger.ReadState(ctx, c.Pool, ref)
	switch {
	case err != nil:
		return with, err
	case v.Phase != job.Standby:
		return with.Without(checks.NoAnswer, reason.PreviousIs(ref.Number, string(v.Phase))), nil
	case v.PausedAt != nil:
		return with.Without(checks.NoAnswer, reason.PreviousIs(ref.Number, "paused")), nil
	case v.StaleSince != nil || v.Verdict == job.Unhealthy:
		return with.Without(checks.NoAnswer, reason.PreviousUnhealthy(ref.Number, v.Reason)), nil
	}
	return c.atSameOffsets(ctx, st, with, ref)
}

// atSameOffsets makes ref the counterpart, unless one of the two versions does not stop at a hold: their rows are then
// never those of the same records, which who chose such an engine has accepted.
func (c *Controller) atSameOffsets(ctx context.Context, st *ledger.State, with checks.Counterpart,
	ref job.Ref,
) (checks.Counterpart, error) {
	if !ref.Adopted() {
		free, err := c.unheld(ctx, st.Ref(), ref)
		if err != nil {
			return with, err
		}
		if len(free) > 0 {
			with = with.Without(checks.NoAnswer, reason.NotHeld(free[0].Number))
			with.Accepted = true
			return with, nil
		}
	}
	var err error
	with.Version, err = c.comparable(ctx, st, ref)
	return with, err
}

// checkBefore runs the checks that gate the flip, at one snapshot in which candidate and live are at the same offsets,
// and returns those that stop it. They do not run again when they passed within CheckFresh as they are in the job file
// now.
func (c *Controller) checkBefore(ctx context.Context, st *ledger.State, liveDown bool) (bad []checks.Result,
	err error,
) {
	due := checks.In(st.Spec.Checks, job.CheckBefore)
	if len(due) == 0 {
		return nil, nil
	}
	past, err := checks.Read(ctx, c.Pool, st.ID, job.CheckBefore)
	if err != nil || checks.Passed(due, past, st.Now, c.config.CheckFresh) {
		return nil, err
	}
	with, err := c.liveOf(ctx, st, liveDown)
	if err != nil {
		return nil, err
	}
	r := &checks.Run{
		Runner: c.runner(), Candidate: st.Version(), Stage: job.CheckBefore, Due: due, With: with,
		Patience: c.config.PromoteDeadline,
	}
	if err := r.Do(ctx); err != nil {
		return nil, missed(err)
	}
	bad = r.Stopping()
	e := st.Entry(ledger.EventChecksPassed, reason.ChecksPassed(len(r.Results)))
	if len(bad) > 0 {
		e = st.Entry(ledger.EventChecksFailed, reason.ChecksFailed(checks.Answers(bad)))
	}
	e.Detail = map[string]any{"checks": r.Results, "positions": r.Offsets}
	err = c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := r.Write(ctx, tx, st); err != nil {
			return err
		}
		return ledger.AddEvent(ctx, tx, e)
	})
	return bad, err
}

// checkAfter runs checks after the flip: candidate and live are what readers see, previous what they saw before.
func (c *Controller) checkAfter(ctx context.Context, st *ledger.State, due []job.Check) (*checks.Run, error) {
	with, err := c.previousOf(ctx, st)
	if err != nil {
		return nil, err
	}
	r := &checks.Run{
		Runner: c.runner(), Candidate: st.Version(), Stage: job.CheckAfter, Due: due, With: with, Patience: c.config.HoldFor,
	}
	return r, missed(r.Do(ctx))
}

// missed makes a barrier that was missed a reason to try again.
func missed(err error) error {
	var m *checks.Missed
	if errors.As(err, &m) {
		return &tryAgain{why: m.Reason, apart: m.Apart, err: err}
	}
	return err
}

// readable refuses a version whose view would give its readers an error.
func (c *Controller) readable(ctx context.Context, v job.Version) error {
	why, err := c.runner().Unreadable(ctx, v, checks.ReadTimeout)
	if err != nil || why.IsZero() {
		return err
	}
	return ledger.RefuseFor(job.ExitChecks,
		"correct serve.columns or serve.where in the job file, then kappactl deploy FILE (nothing is replayed)", why)
}

// warnOfNulls notes the columns that hold values in live and are NULL in every row of the candidate.
func (c *Controller) warnOfNulls(ctx context.Context, st *ledger.State) error {
	live := st.LiveRef()
	if live == nil {
		return nil
	}
	with, err := c.comparable(ctx, st, *live)
	if err != nil {
		return err
	}
	empty, known, err := c.runner().EmptyColumns(ctx, *with, st.Version())
	switch {
	case err != nil:
		return err
	case !known:
		c.log(st).Info("columns are not compared with live: it takes too long")
		return nil
	case len(empty) == 0:
		return nil
	}
	warning := reason.EmptyColumns(live.Number, empty)
	c.log(st).Warn(warning.Text())
	return ledger.AddWarning(ctx, c.Pool, st, warning)
}

// checksAnswer is the answer to a flip that checks stop.
func checksAnswer(ref job.Ref, bad []checks.Result) ledger.Answer {
	a := ledger.Answer{
		Code: job.ExitChecks, Reason: reason.NotPromoted(ref, checks.Report(bad)),
		Next: fmt.Sprintf("correct the check in the job file, then kappactl deploy FILE (nothing is replayed); "+
			"or correct the cause, then kappactl promote %s %s; or kappactl abort %s %s",
			ref.Job, ref.Number, ref.Job, ref.Number),
	}
	for _, r := range bad {
		if r.Detail.Is(reason.CodeLiveIsDown) {
			a.Next = fmt.Sprintf("repair %s, or kappactl promote %s %s --live-is-down (skips that comparison)",
				ref.Job, ref.Job, ref.Number)
		}
		if r.Diff != nil {
			a.Next = fmt.Sprintf("kappactl diff %s %s %s shows what differs; correct the cause, then kappactl promote %s %s, "+
				"or kappactl abort %s %s", ref.Job, r.Diff.A, r.Diff.B, ref.Job, ref.Number, ref.Job, ref.Number)
		}
	}
	return a
}
